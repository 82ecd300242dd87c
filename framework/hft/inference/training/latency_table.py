"""What a row costs, measured over kinds of layers, widths and depths, and interpolated between."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hft.errors import ConfigError, DataError
from hft.inference.bundle import core_layer
from hft.inference.card import LayerEntry
from hft.inference.dataset.in_memory import Floats
from hft.whole_files import write_whole

VERSION = 1
WIDTHS = (8, 16, 32, 64, 128)
HEAD = 3
"""Outputs of every network that is measured."""
ROUNDS, ROWS = 41, 64
"""Of a cell: the median of so many rounds of so many rows, one after another."""


class Grid(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one kind of layer."""

    widths: tuple[int, ...]
    """Units of every layer, ascending."""
    depths: tuple[int, ...]
    """Layers of the kind, ascending from 1."""
    ns: tuple[tuple[float, ...], ...]
    """By depth, then width: a row, head included; grows with both."""


class LatencyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of `hft train --measure-latency`."""

    version: int = VERSION
    target: str
    """What it was measured on."""
    inputs: int
    precision: str
    base_ns: float
    """A row of a network that has only a head."""
    kinds: dict[str, Grid]
    """`lstm`, `gru`, `dense`, `conv5`: with the rows that a convolution sees."""

    def curve(self, kind: str, depth: float) -> tuple[Floats, Floats]:
        """Widths from 0 and ns at them, of a number of layers between those measured.

        Raises:
            ConfigError: no such kind, or deeper than what was measured.
        """
        if kind not in self.kinds:
            raise ConfigError(
                f"the latency table has no {kind}, only {', '.join(self.kinds)}: measure it with "
                "`hft train --measure-latency` and the same --model"
            )
        grid = self.kinds[kind]
        if depth > grid.depths[-1]:
            raise ConfigError(
                f"the latency table of {kind} has up to {grid.depths[-1]} layers, the model has "
                f"{depth:g}: measure again with the same --model"
            )
        depths = np.array([0, *grid.depths])
        columns = np.vstack([np.full(len(grid.widths), self.base_ns), np.array(grid.ns)])
        at = np.array([np.interp(depth, depths, column) for column in columns.T])
        return np.array([0.0, *grid.widths]), np.append(self.base_ns, at)

    def ns(self, kind: str, width: float, depth: float) -> float:
        """Of `depth` layers of `width` units, linear between what was measured of both.

        Raises:
            ConfigError: see `curve`; or wider than what was measured.
        """
        widths, ns = self.curve(kind, depth)
        self._require_width(kind, width)
        return float(along(widths, ns, width, np.clip))

    def of_layers(self, hidden: Sequence[LayerEntry]) -> float:
        """Of a network's hidden layers [ns]."""
        steps = self.steps(hidden)
        return self.base_ns + sum(
            float(along(widths, ns, layer.units, np.clip))
            for layer, (widths, ns) in zip(hidden, steps, strict=True)
        )

    def steps(self, hidden: Sequence[LayerEntry]) -> list[tuple[Floats, Floats]]:
        """What each layer adds to those before it of its kind, as a curve over its width.

        Raises:
            ConfigError: a layer was not measured.
        """
        found = []
        for kind, depth, layer in _in_groups(hidden):
            self._require_width(kind, layer.units)
            (widths, whole), (_, before) = self.curve(kind, depth), self.curve(kind, depth - 1)
            found.append((widths, whole - before))
        return found

    def _require_width(self, kind: str, width: float) -> None:
        most = self.kinds[kind].widths[-1] if kind in self.kinds else width
        if width > most:
            raise ConfigError(
                f"the latency table of {kind} has up to {most} units, the model has {width:g}: "
                "measure again with the same --model"
            )


def along(widths: Floats, ns: Floats, width: Any, clip: Callable[..., Any]) -> Any:
    """A curve at a width, with a gradient wherever `clip` has one."""
    slopes = np.diff(ns) / np.diff(widths)
    parts = zip(widths[:-1].tolist(), np.diff(widths).tolist(), slopes.tolist(), strict=True)
    return ns[0] + sum(slope * clip(width - x, 0.0, dx) for x, dx, slope in parts)


def _in_groups(hidden: Sequence[LayerEntry]) -> list[tuple[str, int, LayerEntry]]:
    found: list[tuple[str, int, LayerEntry]] = []
    for layer in hidden:
        kind = kind_of(layer)
        depth = found[-1][1] + 1 if found and found[-1][0] == kind else 1
        found.append((kind, depth, layer))
    return found


def kind_of(layer: LayerEntry) -> str:
    """Its name in a table."""
    return f"conv{layer.width}" if layer.kind == "conv" else layer.kind


def measured(
    models: Sequence[Sequence[LayerEntry]],
    inputs: int,
    *,
    precision: str = "fp32",
    report: Callable[[str], None] = print,
) -> LatencyTable:
    """Measures every kind of these models' hidden layers here, up to their widths and depths.

    Rows run one after another with everything warm: the least that a row costs.
    """
    from hft import _core

    groups = [group for hidden in models for group in _in_groups(hidden)]
    base_ns = _row_ns([], inputs, precision)
    kinds = {}
    for kind in dict.fromkeys(name for name, _, _ in groups):
        layers = [(depth, layer) for name, depth, layer in groups if name == kind]
        deepest = max(max(depth for depth, _ in layers), 2)
        widest = max(layer.units for _, layer in layers)
        widths = tuple(sorted({*(w for w in WIDTHS if w < widest), widest}))
        depths = tuple(range(1, deepest + 1))
        some = layers[0][1]
        ns = np.array(
            [[_row_ns([_of(some, w)] * d, inputs, precision) for w in widths] for d in depths]
        )
        # Noise must not make a wider network cheaper, or its gates would be pushed open.
        ns = np.maximum.accumulate(np.maximum.accumulate(np.maximum(ns, base_ns), 0), 1)
        kinds[kind] = Grid(widths=widths, depths=depths, ns=tuple(map(tuple, ns.round(1).tolist())))
        report(f"{kind}: {ns.min():.0f} to {ns.max():.0f} ns")
    target = f"{_cpu()}, native {_core.best_isa()}"
    return LatencyTable(
        target=target, inputs=inputs, precision=precision, base_ns=round(base_ns, 1), kinds=kinds
    )


def _of(layer: LayerEntry, units: int) -> LayerEntry:
    return msgspec.structs.replace(layer, units=units)


def _row_ns(hidden: Sequence[LayerEntry], inputs: int, precision: str) -> float:
    from hft import _core

    rng = np.random.default_rng(1)
    layers, width = [], inputs
    for entry in (*hidden, LayerEntry(kind="dense", units=HEAD, activation="softmax")):
        entry = msgspec.structs.replace(entry, precision=precision)
        layers.append(core_layer(entry, _random(rng, entry, width)))
        width = entry.units
    network = _core.build_network([0.0] * inputs, [1.0] * inputs, 5.0, layers)
    stream, rows = _core.NetworkStream(network), rng.standard_normal((ROWS, inputs))
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        stream.steps(rows)
        took.append((time.perf_counter_ns() - began) / ROWS)
    return float(np.median(took))


def _random(rng: np.random.Generator, entry: LayerEntry, inputs: int) -> dict[str, Any]:
    gates = {"lstm": 4, "gru": 3}.get(entry.kind, 1)
    columns = gates * entry.units
    window = (entry.width,) if entry.kind == "conv" else ()
    shapes = {"kernel": (*window, inputs, columns), "bias": (columns,)}
    if gates > 1:
        shapes["recurrent"] = (entry.units, columns)
    if entry.kind == "gru":
        shapes["bias"] = (2, columns)
    return {k: (0.1 * rng.standard_normal(s)).astype(np.float32) for k, s in shapes.items()}


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.is_file() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return next(iter(names), platform.processor() or platform.machine())


def save_table(table: LatencyTable, path: Path) -> None:
    """Writes it as JSON, whole or not at all."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(table), indent=2) + b"\n")


def load_table(path: Path) -> LatencyTable:
    """Reads and checks a table.

    Raises:
        ConfigError: no such file.
        DataError: it is none, or its numbers do not make sense.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no such latency table; `hft train --measure-latency` makes one")
    try:
        table = msgspec.json.decode(path.read_bytes(), type=LatencyTable)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path} is no latency table: {error}") from error
    if table.version != VERSION:
        raise DataError(f"{path} has version {table.version}; this release reads {VERSION}")
    for kind, grid in table.kinds.items():
        lengths = {len(row) for row in grid.ns}
        whole = len(grid.ns) == len(grid.depths) > 0 and lengths == {len(grid.widths)} != {0}
        rising = all(
            list(v) == sorted(set(v)) and min(v, default=0) > 0 for v in (grid.widths, grid.depths)
        )
        if not (whole and rising and all(0 < ns < np.inf for row in grid.ns for ns in row)):
            raise DataError(
                f"{path}: {kind} wants ascending widths and depths and a time above 0 for each "
                f"pair, has {grid.widths}, {grid.depths} and {grid.ns}"
            )
    return table
