"""`model.toml` of a bundle: what a run must know of a model besides its weights."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hft.durations import format_ns
from hft.features import Features

FORMAT = 2

TierName = Literal["FULL", "LIGHT", "MICRO"]
LesserTier = Literal["LIGHT", "MICRO"]


class FeatureEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One input column."""

    kind: str
    name: str
    levels: int = 1
    window: str = ""
    """A duration; none: since the trigger last fired."""
    side: Literal[-1, 0, 1] = 0
    log: bool = False

    def __str__(self) -> str:
        """All that decides what the column holds, for comparison and for people."""
        parts = (
            f"levels={self.levels} window={self.window or '0ns'} side={self.side} log={self.log}"
        )
        return f"{self.name} ({self.kind} {parts})"


class TriggerEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """When a row is made."""

    kind: Literal["packet", "touch", "trade", "clock"]
    sizes: bool = False
    interval: str = ""


class Scaler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """x = clamp((feature - mean) / scale, -clip, clip)."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    clip: float


class TrailingEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows are scaled by what was seen lately, then put in the terms of the scaler."""

    period_ns: Annotated[int, Meta(ge=1)]
    """A new estimate each."""
    memory_ns: Annotated[int, Meta(ge=1)]
    """How far an estimate looks back."""
    drift: Annotated[float, Meta(ge=0)]
    """A block whose mean is off by more scales than this makes a new estimate; 0: never."""

    def __str__(self) -> str:
        """For messages."""
        drift = f"on a drift of {self.drift:g} scales" if self.drift else "on no drift"
        return f"every {format_ns(self.period_ns)} of {format_ns(self.memory_ns)}, {drift}"


class LayerEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A layer; its weights are `layer<n>_<part>` in the weights file, n from 1."""

    kind: Literal["lstm", "gru", "conv", "dense"]
    units: Annotated[int, Meta(ge=1)]
    activation: Literal["linear", "relu", "tanh", "sigmoid", "softmax"] = "linear"
    """Of a dense or convolution layer; LSTM and GRU have tanh and sigmoid gates."""
    width: Annotated[int, Meta(ge=1)] = 1
    """Rows that a convolution sees."""
    precision: Literal["fp32", "int8"] = "fp32"
    """How the native backend keeps its weights; the file has them in float."""


class Readout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """alpha_ticks = shrink * sum p_c * move_ticks[c]; confidence = max p_c."""

    move_ticks: tuple[float, ...]
    shrink: float


class Training(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the weights come from."""

    data: str
    data_sha256: str
    start_ts: int
    end_ts: int
    rows: int
    seed: int
    recipe: str = ""
    """All options, as JSON."""
    versions: dict[str, str] = {}
    """Of what trained it."""


class Gate(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One condition that a form was held against when it was built."""

    name: str
    """Such as `correlation`, `kl`, `argmax`, `decisions`, `pnl`, `latency`."""
    value: float
    limit: float
    passed: bool
    note: str = ""
    judged: bool = True
    """False: there was too little to judge by; it has neither passed nor failed."""

    @property
    def failed(self) -> bool:
        """Whether it speaks against running the form."""
        return self.judged and not self.passed

    def __str__(self) -> str:
        """For messages: `kl 0.5, limit 0.01: on 300 rows`."""
        told = self.name
        if not self.judged:
            told = f"{self.name} not judged"
        elif self.name not in ("export", "run"):
            told = f"{self.name} {self.value:.4g}, limit {self.limit:.4g}"
        return f"{told}: {self.note}" if self.note else told


class TierEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A cheaper model of the same inputs and outputs: LIGHT or MICRO."""

    weights: str
    """File, such as `light.npz`."""
    weights_sha256: str
    layers: tuple[LayerEntry, ...]
    readout: Readout | None = None
    """None: the card's."""
    warm_up_rows: Annotated[int, Meta(ge=0)] = 0
    gates: tuple[Gate, ...] = ()
    """Against FULL."""


class PartEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A file or folder of the bundle that a backend other than `native` runs."""

    file: str
    """Relative to the bundle: `step.onnx`, `saved_model`."""
    backend: Literal["onnx", "litert", "tensorflow"]
    form: Literal["step", "window"]
    """`step`: a row and the states in, outputs and new states out. `window`: (1, rows, inputs) in,
    outputs of the last row out. Inputs come scaled, outputs are the network's own."""
    precision: Literal["fp32", "fp16", "int8", "dynamic"] = "fp32"
    tier: TierName = "FULL"
    sha256: str
    """Of the file; of a folder, over its files' names and contents in order."""
    gates: tuple[Gate, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no gate failed."""
        return not any(gate.failed for gate in self.gates)


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`model.toml`."""

    format: int
    name: str
    outputs: tuple[str, ...]
    horizon_ns: Annotated[int, Meta(ge=0)]
    latency_ns: Annotated[int, Meta(ge=0)]
    """What was predicted: the move from `latency_ns` to `latency_ns + horizon_ns` after the row."""
    warm_up_rows: Annotated[int, Meta(ge=0)]
    """Rows after a start or gap whose outputs are not to be trusted."""
    window_rows: Annotated[int, Meta(ge=0)] = 0
    """0: state is carried from row to row. Else the model sees exactly the last so many rows, from
    nothing each time."""
    budget_ns: Annotated[int, Meta(ge=0)] = 0
    """What a row may cost at p99, warm, in the form that runs; 0: nothing was declared."""
    weights_sha256: str = ""
    source_sha256: str = ""
    """Of `model.keras` beside the card, what `hft build` converts; none: the bundle has none."""
    trigger: TriggerEntry
    features: tuple[FeatureEntry, ...]
    layers: tuple[LayerEntry, ...]
    """Of FULL; none: a model that only parts can run, such as a Transformer."""
    scaler: Scaler
    trailing: TrailingEntry | None = None
    """None: rows are scaled by `scaler` alone."""
    readout: Readout | None = None
    training: Training
    metrics: dict[str, float] = {}
    sensitivity: Annotated[float, Meta(ge=0)] = 0.0
    """Largest change of a class probability a change of a scaled input, on validation rows; what
    bounds the reuse of answers. 0: not measured."""
    tiers: dict[LesserTier, TierEntry] = {}
    parts: tuple[PartEntry, ...] = ()
    gates: tuple[Gate, ...] = ()
    """Of the native weights, against the model they were built from."""


def entries_of(features: Features) -> tuple[tuple[FeatureEntry, ...], TriggerEntry]:
    """How a card writes features and their trigger."""
    entries = tuple(
        FeatureEntry(
            kind=f.kind,
            name=f.name,
            levels=f.levels,
            window=format_ns(f.window_ns) if f.window_ns else "",
            side=f.side,  # type: ignore[arg-type]
            log=f.is_log,
        )
        for f in features
    )
    t = features.trigger
    trigger = TriggerEntry(
        kind=t.kind,  # type: ignore[arg-type]
        sizes=t.sizes,
        interval=format_ns(t.interval_ns) if t.interval_ns else "",
    )
    return entries, trigger


def to_toml(card: Card) -> str:
    """Scalars first, one line a feature and a layer, then the tables."""
    values = msgspec.to_builtins(card)
    tables = {k: v for k, v in values.items() if isinstance(v, dict)}
    lines = [f"{k} = {_toml(v)}" for k, v in values.items() if k not in tables and v is not None]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(f"{k} = {_toml(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        rows = [_toml(v) for v in value]
        if value and isinstance(value[0], dict):
            return "[\n" + "".join(f"  {row},\n" for row in rows) + "]"
        return "[" + ", ".join(rows) + "]"
    return repr(value)
