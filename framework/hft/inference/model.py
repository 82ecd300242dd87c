"""`Model("name")`: a strategy's reference to the bundle it wants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hft.errors import ModelError


@dataclass(frozen=True, slots=True)
class Model:
    """A model bundle by name: `NAME.bundle/` beside the strategy file, or a path to one."""

    name: str

    def folder(self, strategy_file: Path) -> Path:
        """Where the bundle lies.

        Raises:
            ModelError: neither place has it.
        """
        places = [strategy_file.resolve().parent / f"{self.name}.bundle", Path(self.name)]
        for place in places:
            if place.is_dir():
                return place
        raise ModelError(
            f"no bundle for model {self.name!r}: looked at {', '.join(map(str, places))}"
        )
