"""What is measured of a bundle: its forms, with rows to feed them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hft.errors import ConfigError, ModelError
from hft.features import Feature
from hft.inference.bench.native import Mode
from hft.inference.bench.timing import pinned
from hft.inference.bundle import CARD, Bundle, load_bundle, read_card
from hft.inference.card import PartEntry, Scaler, TierName

if TYPE_CHECKING:
    from hft.inference.backends import Backend

Floats = npt.NDArray[np.float64]
ROWS = 4096
BACKENDS = ("native", "onnx", "litert", "tensorflow")
_LIBRARIES = {"onnx": "onnxruntime", "litert": "ai_edge_litert", "tensorflow": "tensorflow"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured: one backend of a bundle, as it would run."""

    bundle: Bundle
    backend: str
    tier: TierName = "FULL"
    precision: str = ""
    """Empty: each layer's own, or the backend's first part."""
    threads: int = 1

    @property
    def name(self) -> str:
        """Such as `onnx int8`."""
        return f"{self.backend} {self.precision}".strip()

    def opened(self) -> Backend:
        """The backend, loaded; close it."""
        from hft.inference.backends import open_backend

        return open_backend(
            self.bundle,
            self.backend,
            tier=self.tier,
            precision=self.precision,
            threads=self.threads,
        )

    def network(self) -> Any:
        """The native network of the same."""
        return self.bundle.network(tier=self.tier, precision=self.precision)

    def rows(self, n: int = ROWS, seed: int = 1) -> Floats:
        """Rows as wide and as large as those of the training, made up, (n, inputs)."""
        return made_up_rows(self.bundle.card.scaler, n, seed)

    def held(self) -> AbstractContextManager[int | None]:
        """Pins this thread to a processor, where the work is this thread's own.

        TensorFlow hands work to threads of its own even if there is one: on one processor the two
        would wait for each other's turns, milliseconds long.
        """
        alone = self.threads == 1 and self.backend != "tensorflow"
        return pinned() if alone else nullcontext()

    @property
    def window_rows(self) -> int:
        """Of the tier; 0: it carries a state."""
        return self.bundle.card.window_rows if self.tier == "FULL" else 0

    @property
    def forms(self) -> tuple[Mode, ...]:
        """In which a native row is timed."""
        return ("window",) if self.window_rows else ("step", "armed")


def opened_bundle(path: str | Path) -> Bundle:
    """A bundle to be timed: own features are no part of a step, so their code is not wanted."""
    own = [e.name for e in read_card(Path(path) / CARD).features if e.kind == "own"]
    return load_bundle(
        path, [Feature("own", n, update=lambda state, row: (state, 0.0)) for n in own]
    )


def made_up_rows(scaler: Scaler, n: int, seed: int = 1) -> Floats:
    """Normal in each column with the mean and scale of the training, (n, inputs)."""
    z = np.random.default_rng(seed).standard_normal((n, len(scaler.mean)))
    return np.ascontiguousarray(np.array(scaler.mean) + np.array(scaler.scale) * z)


def backends_of(bundle: Bundle, tier: TierName) -> list[str]:
    """Those that can run a tier, `native` first."""
    there = {p.backend for p in _parts(bundle, tier)}
    native = ["native"] if bundle.layers(tier) else []
    return native + [name for name in BACKENDS if name in there]


def not_installed(bundle: Bundle, tier: TierName) -> list[str]:
    """Backends that could run a tier if their library were here."""
    return [
        name
        for name in backends_of(bundle, tier)
        if name in _LIBRARIES and importlib.util.find_spec(_LIBRARIES[name]) is None
    ]


def subjects(
    bundle: Bundle,
    backends: Sequence[str],
    tier: TierName,
    precisions: Sequence[str],
    threads: int,
) -> list[Subject]:
    """What to measure of a bundle.

    Raises:
        ConfigError: an unknown backend.
        ModelError: the bundle has none that could run.
    """
    for name in backends:
        if name not in BACKENDS:
            raise ConfigError(f"no backend {name!r}; there are {', '.join(BACKENDS)}")
    names = list(backends)
    if not names:
        there, absent = backends_of(bundle, tier), not_installed(bundle, tier)
        names = [name for name in there if name not in absent] or there
    if not names:
        raise ModelError(f"{bundle.path}: {tier} has no form to run; `hft build` makes them")
    return [
        Subject(bundle, name, tier, precision, threads)
        for name in names
        for precision in (precisions or _precisions(bundle, name, tier))
    ]


def _precisions(bundle: Bundle, backend: str, tier: TierName) -> list[str]:
    there = [p.precision for p in _parts(bundle, tier) if p.backend == backend]
    return list(dict.fromkeys(there)) or [""]


def _parts(bundle: Bundle, tier: TierName) -> list[PartEntry]:
    """Those that could be made: a card names the others too."""
    return [p for p in bundle.card.parts if p.tier == tier and p.sha256]
