"""Parts of a bundle that a library computes in this process."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from hft.inference.backends.parts import (
    Form,
    PartBackend,
    Signature,
    chosen_part,
    forms_of,
    require_threads,
)
from hft.inference.bundle import Bundle
from hft.inference.card import TierName


class InProcessBackend(PartBackend):
    """Finds the part, has it opened, and refuses one that is not the bundle's."""

    forms: tuple[Form, ...] = ("window", "step")
    """Those that the library can have."""

    def __init__(self, bundle: Bundle, tier: TierName, precision: str, threads: int) -> None:
        require_threads(threads)
        forms = tuple(form for form in forms_of(bundle, tier) if form in self.forms)
        entry, self._path = chosen_part(bundle, self.name, precision, tier, forms)
        super().__init__(bundle, tier, entry.precision, entry.form)
        self.signature = self._open(self._path, threads)
        self.signature.require(self._path, self.x_shape, self.frame.classes, self.form)
        self._prepare()
        self._require_finite(self._path)

    @abstractmethod
    def _open(self, path: Path, threads: int) -> Signature:
        """Loads the part.

        Raises:
            ConfigError: the library is not installed.
            ModelError: it does not load it.
        """

    def _prepare(self) -> None:
        """Once the signature is known to fit."""
