"""Magnitude pruning: the smallest weights become zero, at once or while a model trains on.

It gains no latency here: native, ONNX Runtime's and LiteRT's kernels are dense and multiply by a
zero as by any number. What it gives is a file that packs better; to be faster take units out
(`prune_units`) or bits (`quantise`). Training with masks is in `train_on`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError
from hft.inference.compress.stack import Stack

NO_LATENCY = (
    "magnitude pruning gains no latency: kernels are dense, a zero costs what a weight does"
)
MATRICES = ("kernel", "recurrent")
"""Arrays that are pruned; biases are not."""

Mask = npt.NDArray[np.bool_]


def prune_weights(stack: Stack, share: float | Sequence[float]) -> Stack:
    """The network with the smallest weights of each matrix set to zero.

    Args:
        stack: what to prune.
        share: of each matrix's weights, in [0, 1); one for all layers, or one a layer.

    Raises:
        ConfigError: a share is out of range.
    """
    masks = masks_of(stack, share)
    weights = [
        {name: array * mask[name] if name in mask else array for name, array in arrays.items()}
        for arrays, mask in zip(stack.weights, masks, strict=True)
    ]
    return replace(stack, weights=weights)


def masks_of(stack: Stack, share: float | Sequence[float]) -> list[Mapping[str, Mask]]:
    """By layer and matrix, False where a weight goes."""
    shares = [share] * len(stack.layers) if isinstance(share, int | float) else list(share)
    if len(shares) != len(stack.layers):
        raise ConfigError(f"{len(shares)} shares of weights for {len(stack.layers)} layers")
    for value in shares:
        require_share(value)
    return [
        {name: mask_of(arrays[name], value) for name in MATRICES if name in arrays}
        for arrays, value in zip(stack.weights, shares, strict=True)
    ]


def mask_of(array: npt.NDArray[Any], share: float) -> Mask:
    """False at the `share` of weights that are smallest; of equal ones the first go."""
    mask = np.ones(array.size, bool)
    order = np.argsort(np.abs(array), axis=None, kind="stable")
    mask[order[: int(share * array.size)]] = False
    return mask.reshape(array.shape)


def polynomial_share(step: int, begin: int, end: int, final: float) -> float:
    """Share at a training step: 0 until `begin`, `final` from `end` on, fast first between.

    Source:
        Zhu and Gupta (2017), "To prune, or not to prune", equation 1, from zero, power 3.
    """
    done = min(max((step - begin) / max(end - begin, 1), 0.0), 1.0)
    return final * (1.0 - (1.0 - done) ** 3)


def require_share(share: float) -> None:
    """Refuses what is no share of weights.

    Raises:
        ConfigError: names it.
    """
    if not 0.0 <= share < 1.0:
        raise ConfigError(f"share of weights is {share:g}: want at least 0 and less than 1")


def mask_callback(final: float, begin: int, end: int, every: int = 100) -> Any:
    """A Keras 3 callback that prunes while it trains.

    Every `every` steps from `begin` to `end` the share grows and the masks are made anew of the
    weights as they are; after each batch what is masked is zero again, whatever the optimizer did.

    Args:
        final: share of each matrix's weights that are zero at the end.
        begin: first step that prunes.
        end: step from which the masks stay.
        every: steps between masks.

    Raises:
        ConfigError: the share is out of range.
    """
    import keras

    require_share(final)

    class Masks(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.step = 0
            self.masks: list[tuple[Any, npt.NDArray[np.float32]]] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            due = begin <= self.step <= end and (self.step - begin) % every == 0
            if due or self.step == end:
                self.renew(polynomial_share(self.step, begin, end, final))
            for variable, mask in self.masks:
                variable.assign(variable * mask)
            self.step += 1

        def renew(self, share: float) -> None:
            self.masks = [
                (variable, mask_of(np.asarray(variable), share).astype(np.float32))
                for variable in self.model.trainable_variables
                if variable.name in ("kernel", "recurrent_kernel")
            ]

    return Masks()
