"""A native network without a folder: what is cut, rounded or copied before it becomes a bundle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, ModelError
from hft.inference.answers import answers
from hft.inference.bundle import Bundle, Weights, core_layer
from hft.inference.card import LayerEntry, Scaler, TierName
from hft.inference.dataset.in_memory import Floats, Rows
from hft.inference.training.task import scaled


@dataclass(frozen=True, slots=True)
class Stack:
    """Layers in order and their weights."""

    layers: tuple[LayerEntry, ...]
    weights: Weights
    scaler: Scaler
    window_rows: int = 0
    """0: state is carried from row to row."""

    @property
    def has_memory(self) -> bool:
        """Whether an answer depends on rows before, by state or window."""
        return any(e.kind in ("lstm", "gru") or e.width > 1 for e in self.layers)

    @property
    def gives_probabilities(self) -> bool:
        """Whether its outputs are those of a softmax."""
        return self.layers[-1].activation == "softmax"

    @property
    def parameters(self) -> int:
        """How many weights and biases there are."""
        return sum(int(array.size) for arrays in self.weights for array in arrays.values())

    def in_precisions(self, precisions: tuple[str, ...]) -> Stack:
        """The same weights, kept as said, a layer each ("fp32", "int8")."""
        layers = tuple(
            msgspec.structs.replace(entry, precision=precision)
            for entry, precision in zip(self.layers, precisions, strict=True)
        )
        return replace(self, layers=layers)

    def network(self, isa: str = "", upto: int | None = None) -> Any:
        """The native network of the first `upto` layers, all of them by default.

        Raises:
            ModelError: shapes do not fit each other, or a value is not finite.
        """
        from hft import _core

        pairs = list(zip(self.layers, self.weights, strict=True))[:upto]
        scaler = self.scaler
        try:
            layers = [core_layer(entry, arrays) for entry, arrays in pairs]
            return _core.build_network(
                list(scaler.mean), list(scaler.scale), scaler.clip, layers, isa=isa
            )
        except (ConfigError, TypeError) as error:
            raise ModelError(f"network of {len(pairs)} layers: {error}") from error

    def outputs(self, rows: Rows, cut: slice, isa: str = "", upto: int | None = None) -> Floats:
        """What layer `upto`, the last by default, gives on the rows of a cut, (n, units).

        A state is warmed up on the rows before the cut, a window is exact.
        """
        return answers(self.network(isa, upto), rows, cut, self.window_rows)

    def scaled(self, x: Floats) -> npt.NDArray[np.float32]:
        """Rows as the first layer sees them, (..., k)."""
        return scaled(x, self.scaler)


def stack_of(bundle: Bundle, tier: TierName = "FULL") -> Stack:
    """The native network of a bundle.

    Raises:
        ModelError: the tier has no native layers.
    """
    layers = bundle.layers(tier)
    if not layers:
        raise ModelError(
            f"{bundle.path}: {tier} has no native layers; only a native model can be pruned or "
            "quantised here, `hft build --distil` makes a native copy of any"
        )
    weights = bundle.weights if tier == "FULL" else bundle.lesser[tier]
    window_rows = bundle.card.window_rows if tier == "FULL" else 0
    return Stack(layers, weights, bundle.card.scaler, window_rows)
