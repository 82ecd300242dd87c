"""`model.keras` of a bundle: the trained model as Keras keeps it, what `hft build` converts."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

SOURCE = "model.keras"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_keras(model: Any, path: Path) -> None:
    """Saves without times, so that the same weights give the same bytes."""
    dated = path.with_name(f"dated-{path.name}")
    model.save(dated)
    with zipfile.ZipFile(dated) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name in sorted(old.namelist()):
            content = old.read(name)
            if name == "metadata.json":
                facts = json.loads(content) | {"date_saved": ""}
                content = json.dumps(facts).encode()
            new.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    dated.unlink()
