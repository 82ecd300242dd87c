"""`model.keras` of a bundle: the trained model as Keras keeps it, what `hft build` converts."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

SOURCE = "model.keras"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_keras(model: Any, path: Path) -> None:
    """Saves without times and addresses, so that the same weights give the same bytes."""
    dated = path.with_name(f"dated-{path.name}")
    with warnings.catch_warnings():  # Keras reads TensorFlow's arrays in a way NumPy 2 dislikes
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
        model.save(dated)
    with zipfile.ZipFile(dated) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name in sorted(old.namelist()):
            content = old.read(name)
            if name == "metadata.json":
                content = json.dumps(json.loads(content) | {"date_saved": ""}).encode()
            elif name == "config.json":
                content = _numbered(content.decode()).encode()
            new.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    dated.unlink()


def _numbered(config: str) -> str:
    """Objects that layers share are told apart by address: by number instead."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"{found[1]}{numbers.setdefault(found[2], len(numbers) + 1)}"

    return re.sub(r'("shared_object_id": )(\d+)', number, config)
