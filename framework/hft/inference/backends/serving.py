"""A SavedModel in TensorFlow Serving, over REST.

The memory of a stream stays here and travels with each row, so that any replica may answer it. A
connection belongs to a stream. The version that was checked is the one that is asked from then on:
a server that goes on to a newer one must not answer with other weights. Threads and batches are the
server's own matter (`--tensorflow_intra_op_parallelism`, `--enable_batching`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from hft.errors import ConfigError, ModelError
from hft.inference.backends.frame import Doubles, Floats
from hft.inference.backends.parts import AGAIN, PartBackend, PartState, Signature
from hft.inference.backends.rest import RestClient
from hft.inference.backends.tensorflow import SIGNATURES
from hft.inference.bundle import Bundle
from hft.inference.card import TierName

_PINNED = re.compile(r"/(versions|labels)/[^/:]+$")
SAME = 1e-3
"""Between the served network's outputs and the bundle's own, on made-up rows."""


class ServingState(PartState):
    """A connection, and memories as the last answer gave them."""

    def __init__(self, owner: ServingBackend) -> None:
        super().__init__(owner)
        self.client = owner.connected()
        self.memories = owner.zeros()


class ServingBackend(PartBackend):
    """Waits until the server is ready, and refuses a model other than the bundle's."""

    name = "serving"

    def __init__(
        self, bundle: Bundle, tier: TierName, url: str, timeout_s: float, ready_s: float
    ) -> None:
        if not url:
            raise ConfigError(
                "backend serving needs url, such as http://localhost:8501/v1/models/NAME"
            )
        is_windowed = tier == "FULL" and bundle.card.window_rows > 0
        super().__init__(bundle, tier, "fp32", "window" if is_windowed else "step")
        self.url, self._timeout_s = url, timeout_s
        self._clients: list[RestClient] = []
        try:
            first = self.connected()
            first.wait_ready(ready_s)
            told = first.metadata()
            self.version = _version(told, url)
            """Of the served model."""
            self.url = f"{_PINNED.sub('', url.rstrip('/'))}/versions/{self.version}"
            self.signature = _signature(told, SIGNATURES[self.form], url)
            self.signature.require(url, self.x_shape, self.frame.classes, self.form)
            self._require_same()
        except BaseException:
            self.close()
            raise

    def connected(self) -> RestClient:
        """A connection of its own, which `close` closes."""
        client = RestClient(self.url, self._timeout_s)
        self._clients.append(client)
        return client

    def zeros(self) -> dict[str, Any]:
        """Memories of a stream that has seen no row, as JSON has them."""
        memories = self.signature.memories
        return {name: np.zeros(shape).tolist() for name, shape in memories.items()}

    def request(self, x: Floats, memories: dict[str, Any]) -> bytes:
        """What is sent for scaled rows `x` of shape `x_shape`, and a step's memories."""
        name = SIGNATURES[self.form]
        if self.form == "window":  # row format: one instance a stream
            return msgspec.json.encode({"signature_name": name, "instances": x.tolist()})
        inputs = {"x": x.tolist(), **memories}
        return msgspec.json.encode({"signature_name": name, "inputs": inputs})

    def made_up_requests(self, n: int = 64) -> list[bytes]:
        """Requests of streams that have seen no row, for a load test."""
        from hft.inference.bench.subject import made_up_rows

        rows = made_up_rows(self.bundle.card.scaler, n * max(self.window_rows, 1))
        x = np.empty(rows.shape, np.float32)
        self.frame.scale(rows, np.empty(rows.shape), x)
        return [self.request(block, self.zeros()) for block in x.reshape(n, *self.x_shape)]

    def _require_same(self) -> None:
        """The server may serve what was deployed before: a few answers tell."""
        from hft import _core
        from hft.inference.bench.subject import made_up_rows

        rows = made_up_rows(self.bundle.card.scaler, self.window_rows or 8)
        theirs = np.zeros(self._out, np.float32)
        self.window(rows, theirs)  # answers that are no numbers are refused
        if not self.bundle.layers(self.tier):
            return
        network = self.bundle.network(tier=self.tier, precision="fp32")
        ours = _core.NetworkStream(network).batch(rows)[-1]
        n = self.frame.classes
        off = float(np.abs(theirs[:n] - ours[:n]).max())
        if not off <= SAME:
            raise ModelError(
                f"{self.url}: version {self.version} answers {off:.3g} away from "
                f"{self.bundle.path}: it serves another model; deploy this bundle's saved_model"
            )

    def _state(self) -> ServingState:
        return ServingState(self)

    def _run(self, state: ServingState) -> None:
        told, _ = state.client.predict(self.request(state.x, state.memories))
        if self.form == "window":
            state.y[...] = self._tensor(told, "predictions", (1, self.frame.classes))
            return
        memories = self.signature.memories
        if not memories:  # of a single output the name is left out
            state.y[...] = self._tensor(told, "outputs", state.y.shape)
            return
        outputs = self._field(told, "outputs")
        y = self._tensor(outputs, "y", state.y.shape)
        for name, shape in memories.items():
            self._tensor(outputs, f"{name}_out", shape)
        state.y[...] = y
        state.memories = {name: outputs[f"{name}_out"] for name in memories}

    def _field(self, told: Any, name: str) -> Any:
        if not isinstance(told, dict) or name not in told:
            raise ModelError(f"{self.url}: answer has no {name}: {str(told)[:200]}")
        return told[name]

    def _tensor(self, told: Any, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor of an answer."""
        try:
            array = np.array(self._field(told, name), np.float32)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{self.url}: {name} is no tensor of numbers: {str(told)[:200]}"
            ) from error
        if array.shape != shape:
            raise ModelError(f"{self.url}: {name} is {array.shape}, want {shape}; {AGAIN}")
        if not np.isfinite(array).all():
            raise ModelError(
                f"{self.url}: {name} is {array.ravel()[:8].tolist()}: weights are not finite, or a "
                f"memory has run away; {AGAIN}"
            )
        return array

    def _batch(self, states: Sequence[ServingState], rows: Doubles, out: Floats) -> None:
        if self.form != "window":
            super()._batch(states, rows, out)
            return

        def answers(x: Floats) -> Floats:
            told, _ = states[0].client.predict(self.request(x, {}))
            return self._tensor(told, "predictions", (len(x), self.frame.classes))

        self._batch_windows(states, rows, out, answers)

    def _forget(self, state: ServingState) -> None:
        state.memories = self.zeros()

    def _close(self) -> None:
        for client in self._clients:
            client.close()


def _version(told: Any, url: str) -> str:
    """That a URL means now; its status tells all versions, of a label too."""
    try:
        return str(told["model_spec"]["version"])
    except (KeyError, TypeError) as error:
        raise ModelError(f"{url}/metadata: not a served model's: {str(told)[:200]}") from error


def _signature(told: Any, name: str, url: str) -> Signature:
    """Of GET URL/metadata."""
    try:
        signatures = told["metadata"]["signature_def"]["signature_def"]
        there = ", ".join(signatures) or "none"
        if name not in signatures:
            raise ModelError(f"{url}: no signature {name}, there are {there}; {AGAIN}")
        chosen = signatures[name]
        return Signature(_shapes(chosen["inputs"]), _shapes(chosen["outputs"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{url}/metadata: not a served model's: {str(told)[:200]}") from error


def _shapes(tensors: Any) -> dict[str, tuple[int | None, ...]]:
    """Sizes come as text; -1 is any."""
    found = {}
    for name, tensor in tensors.items():
        sizes = [int(dim["size"]) for dim in tensor["tensor_shape"].get("dim", [])]
        found[name] = tuple(None if n < 0 else n for n in sizes)
    return found
