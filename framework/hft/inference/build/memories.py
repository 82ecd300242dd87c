"""What a network remembers between rows, by the names that every step part uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hft.inference.bundle import Weights
from hft.inference.card import LayerEntry


@dataclass(frozen=True, slots=True)
class Memory:
    """One state of a step: an input, and an output of the same shape called `<name>_out`."""

    name: str
    shape: tuple[int, ...]

    @property
    def out(self) -> str:
        """Its name among the outputs."""
        return self.name + "_out"


def memories(layers: Sequence[LayerEntry], weights: Weights) -> list[tuple[Memory, ...]]:
    """By layer; n counts layers with memory.

    `h<n>`, `c<n>` (1, u) of an LSTM, `h<n>` of a GRU; `m<n>` (1, width - 1, inputs), oldest row
    first, of a convolution that sees more than one row.
    """
    found: list[tuple[Memory, ...]] = []
    n = 0
    for layer, arrays in zip(layers, weights, strict=True):
        one_row = layer.kind == "dense" or (layer.kind == "conv" and layer.width == 1)
        n += not one_row
        if one_row:
            found.append(())
        elif layer.kind == "conv":
            found.append((Memory(f"m{n}", (1, layer.width - 1, arrays["kernel"].shape[1])),))
        else:
            names = ("h", "c") if layer.kind == "lstm" else ("h",)
            found.append(tuple(Memory(f"{name}{n}", (1, layer.units)) for name in names))
    return found


def inputs_of(weights: Weights) -> int:
    """Columns that the first layer takes."""
    return int(weights[0]["kernel"].shape[-2])
