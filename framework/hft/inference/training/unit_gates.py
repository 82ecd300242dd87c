"""Gates of hidden units: which stay is learned, with what they cost in the loss.

A gate multiplies all that hears a unit: the next layer's kernel and, of LSTM and GRU, the layer's
own recurrent kernel. Closed for good, the unit can be taken out and no output changes. While it is
learned a gate is a hard concrete draw (Louizos, Welling, Kingma 2018): 0, 1, or between, with a
chance of not being 0 that has a gradient. That chance, summed over a layer, is its expected width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hft.inference.compress.prune_units import sliced
from hft.inference.compress.stack import Stack

BETA, LOW, HIGH = 2 / 3, -0.1, 1.1
"""Temperature, and how far a draw is stretched before it is clipped to [0, 1]."""
OPEN = 1.0
"""Where a gate's logit begins: open in 93 of 100 draws."""
_SHIFT = BETA * math.log(-LOW / HIGH)


def chance_open(tf: Any, logits: Any) -> Any:
    """That a draw is not 0, a unit."""
    return tf.sigmoid(logits - _SHIFT)


def drawn(tf: Any, logits: Any, seed: Any) -> Any:
    """A gate a unit; the same seed draws the same."""
    u = tf.random.stateless_uniform(tf.shape(logits), seed, 1e-6, 1 - 1e-6)
    s = tf.sigmoid((tf.math.log(u) - tf.math.log(1 - u) + logits) / BETA)
    return tf.clip_by_value(s * (HIGH - LOW) + LOW, 0.0, 1.0)


def settled(logits: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The gates to keep; at least one unit of a layer stays."""
    s = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
    gates = np.clip(s * (HIGH - LOW) + LOW, 0.0, 1.0)
    if not gates.any():
        gates[int(np.argmax(logits))] = 1.0
    return gates.astype(np.float32)


def gated(weights: Sequence[dict[str, Any]], gates: Sequence[Any]) -> list[dict[str, Any]]:
    """Weights times gates, one array a hidden layer, of NumPy or TensorFlow."""
    made = [dict(arrays) for arrays in weights]
    for n, gate in enumerate(gates):
        if "recurrent" in made[n]:
            made[n]["recurrent"] = made[n]["recurrent"] * gate[:, None]
        made[n + 1]["kernel"] = made[n + 1]["kernel"] * gate[:, None]
    return made


def without_closed(stack: Stack, gates: Sequence[npt.NDArray[np.float32]]) -> Stack:
    """The same function of fewer units: gates go into weights, closed units go."""
    whole = replace(stack, weights=gated([dict(w) for w in stack.weights], gates))
    kept = [np.flatnonzero(gate) for gate in gates]
    return sliced(whole, [*kept, np.arange(stack.layers[-1].units)])
