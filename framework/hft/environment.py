"""What a run depended on besides its recipe: versions, machine, hashes of code, bundle and data."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hft.config import LEGS, PROFILE
from hft.sources import computed_by

if TYPE_CHECKING:
    from hft.plan import Plan

_PACKAGES = ("numpy", "polars", "pyarrow", "msgspec")


def environment(plan: Plan) -> dict[str, Any]:
    """Facts to compare two runs by; plain values."""
    from hft import __version__, _core

    facts: dict[str, Any] = {
        "hft": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "isa": _core.best_isa(),
    }
    for package in _PACKAGES:
        facts[package] = metadata.version(package)
    if plan.file is not None:
        facts["strategy_hash"] = file_hash(plan.file)
    if plan.recipe.state:
        facts["state_hash"] = file_hash(Path(plan.recipe.state))
    latency = plan.recipe.latency
    is_drawn = any(getattr(latency, leg) == PROFILE for leg in LEGS)
    if is_drawn and Path(latency.profile).is_file():  # else a shipped one, which is code
        facts["profile_hash"] = file_hash(Path(latency.profile))
    for source in plan.sources:
        if source.bundle is not None:
            # The card holds the hash of the weights.
            facts[f"bundle_{source.name}"] = file_hash(source.bundle.path / "model.toml")
            facts[f"model_{source.name}"] = computed_by(source.config)
    for swap in plan.swaps:
        facts[f"bundle_swap_{swap.number}"] = file_hash(swap.bundle.path / "model.toml")
    for feed in plan.feeds:
        facts[f"data_{feed.spec.name}"] = feed.hash
    open_questions = {f.spec.name: list(f.cannot_tell) for f in plan.feeds if f.cannot_tell}
    if open_questions:
        facts["cannot_tell"] = open_questions
    return facts


def file_hash(path: Path) -> str:
    """SHA-256 of a file, hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
