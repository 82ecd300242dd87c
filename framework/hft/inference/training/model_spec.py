"""What `--model` says: layers by kind, units and width, such as `conv:16x3+lstm:32`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hft.errors import ConfigError
from hft.inference.card import LayerEntry

FORMS = (
    "lstm:64,64, gru:32, conv:32x5,32x3 (units x rows), dense:64,32, one after another as in "
    "conv:16x3+lstm:32, or transformer:d=32,heads=2,layers=1"
)
MOST_UNITS = 4096
_ACTIVATIONS = {"conv": "relu", "dense": "relu"}
_MEMORIES = ("lstm", "gru")


@dataclass(frozen=True, slots=True)
class Transformer:
    """An encoder over a window, read at its last row."""

    d: int = 32
    heads: int = 2
    layers: int = 1


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Hidden layers; the head that gives class probabilities comes after them."""

    text: str
    hidden: tuple[LayerEntry, ...] = ()
    transformer: Transformer | None = None

    def entries(self, outputs: int) -> tuple[LayerEntry, ...]:
        """Native layers, head included; none of a Transformer."""
        if self.transformer is not None:
            return ()
        return (*self.hidden, LayerEntry(kind="dense", units=outputs, activation="softmax"))

    @property
    def reach(self) -> int | None:
        """Rows before the newest that decide an answer; None: all there were."""
        if any(layer.kind in _MEMORIES for layer in self.hidden):
            return None
        return sum(layer.width - 1 for layer in self.hidden)


def model_spec(text: str) -> ModelSpec:
    """Reads a spec.

    Raises:
        ConfigError: it is none; says what would be.
    """
    parts = [part.strip() for part in text.split("+")]
    if parts[0].partition(":")[0] == "transformer":
        if len(parts) > 1:
            raise ConfigError(f"model {text!r}: a transformer stands alone; want {FORMS}")
        return ModelSpec(text, transformer=_transformer(text, parts[0].partition(":")[2]))
    hidden = tuple(layer for part in parts for layer in _layers(text, part))
    return ModelSpec(text, hidden)


def _layers(text: str, part: str) -> list[LayerEntry]:
    kind, _, sizes = part.partition(":")
    if kind not in ("lstm", "gru", "conv", "dense"):
        raise ConfigError(f"model {text!r}: no kind of layer {kind!r}; want {FORMS}")
    return [_layer(text, kind, size.strip()) for size in sizes.split(",")]


def _layer(text: str, kind: str, size: str) -> LayerEntry:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})" if kind == "conv" else r"(\d{1,5})", size)
    if not found:
        wanted = "units x rows such as 32x5" if kind == "conv" else "units such as 32"
        raise ConfigError(f"model {text!r}: {kind} has {size!r}: want {wanted}")
    units, width = int(found[1]), int(found[2]) if kind == "conv" else 1
    if not 1 <= units <= MOST_UNITS or not 1 <= width <= MOST_UNITS:
        raise ConfigError(f"model {text!r}: {kind} has {size}: want each from 1 to {MOST_UNITS}")
    return LayerEntry(
        kind=kind,  # type: ignore[arg-type]
        units=units,
        width=width,
        activation=_ACTIVATIONS.get(kind, "linear"),  # type: ignore[arg-type]
    )


def _transformer(text: str, options: str) -> Transformer:
    found: dict[str, int] = {}
    for option in filter(None, options.split(",")):
        key, _, value = option.strip().partition("=")
        if key not in ("d", "heads", "layers") or not value.isdecimal() or not int(value):
            raise ConfigError(
                f"model {text!r}: {option.strip()!r}: want d=32, heads=2 and layers=1, in whole "
                "numbers above 0"
            )
        found[key] = int(value)
    made = Transformer(**found)
    if made.d % made.heads or made.d > MOST_UNITS:
        raise ConfigError(
            f"model {text!r}: d is {made.d}, heads {made.heads}: want d at most {MOST_UNITS} and "
            "a multiple of heads"
        )
    return made
