"""What computes a model: the core's own kernels, another library, or a server."""

from __future__ import annotations

from hft.errors import ConfigError
from hft.inference.backends.base import Backend, State, Warmth
from hft.inference.bundle import Bundle
from hft.inference.card import TierName

__all__ = ["NAMES", "Backend", "State", "Warmth", "open_backend"]

NAMES = ("native", "litert", "onnx", "tensorflow", "serving")


def open_backend(
    bundle: Bundle,
    name: str = "native",
    *,
    tier: TierName = "FULL",
    precision: str = "",
    threads: int = 1,
    url: str = "",
    timeout_s: float = 1.0,
    ready_s: float = 30.0,
) -> Backend:
    """Loads a tier of a bundle into what is to compute it.

    Args:
        bundle: loaded.
        name: one of `NAMES`.
        tier: which of the bundle's.
        precision: `fp32`, `fp16`, `int8`, `dynamic`; empty: each native layer's own, or the first
            part that passed its gates. A part that failed them runs only if it is named here.
        threads: of the library; `native` computes in the calling thread, `serving` on its server.
        url: of `serving`: http://HOST:8501/v1/models/NAME.
        timeout_s: of `serving`: for an answer.
        ready_s: of `serving`: until the server has loaded the model.

    Raises:
        ConfigError: an unknown name, a library that is not installed, threads that cannot be had,
            a precision of `serving`.
        ModelError: the bundle has no such tier or part, the part is not what the card says, or all
            that could run failed their gates.
        VenueError: the server does not answer.
    """
    if name == "native":
        from hft.inference.backends.native import NativeBackend

        return NativeBackend(bundle, tier, precision)
    if name == "litert":
        from hft.inference.backends.litert import LiteRtBackend

        return LiteRtBackend(bundle, tier, precision, threads)
    if name == "onnx":
        from hft.inference.backends.onnx import OnnxBackend

        return OnnxBackend(bundle, tier, precision, threads)
    if name == "tensorflow":
        from hft.inference.backends.tensorflow import TensorFlowBackend

        return TensorFlowBackend(bundle, tier, precision, threads)
    if name == "serving":
        from hft.inference.backends.serving import ServingBackend

        if precision not in ("", "fp32"):
            raise ConfigError(
                f"precision is {precision!r}: a server runs the saved_model, which is fp32"
            )
        return ServingBackend(bundle, tier, url, timeout_s, ready_s)
    raise ConfigError(f"no backend {name!r}; there are {', '.join(NAMES)}")
