"""A store of many days and instruments: what is in it, and reading only what is asked for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from hft.config import Recipe
from hft.data import FileData, Store, open_data
from hft.data import files as forms
from hft.data.synth import SynthConfig, synthesize
from hft.feeds import open_feeds


@pytest.mark.parametrize("order_by_order", [False, True])
def test_a_synthetic_feed_says_which_kinds_it_has(order_by_order: bool) -> None:  # noqa: FBT001
    config = SynthConfig(duration_s=8.5 * 3600, messages_per_s=2, order_by_order=order_by_order)
    recipe = msgspec.convert({"data": {"synth": msgspec.to_builtins(config)}}, Recipe)
    (feed,) = open_feeds(recipe)
    arrays, specs = synthesize(config)
    (same,) = open_feeds(recipe, arrays, specs)
    assert feed.kinds == same.kinds
    assert "TRADE" in feed.kinds or "EXECUTE" in feed.kinds


@pytest.mark.parametrize("raw", [False, True])
def test_kinds_of_a_store_are_those_of_the_days_asked_for(
    tmp_path: Path,
    feed,
    spec,
    raw: bool,  # noqa: FBT001
) -> None:
    store = Store(tmp_path / "s")
    midnight = int(np.searchsorted(feed["ts_recv"], forms_day(feed)))
    feed["kind"][:midnight] = 1
    with store.writer(spec, raw=raw) as writer:
        writer.add(feed)
        writer.note(cannot_tell=["no receive time"])
    assert store.kinds(spec.name) == {"LEVEL", "TRADE"}
    assert store.kinds(spec.name, end="2024-08-09") == {"LEVEL"}
    assert store.cannot_tell(spec.name) == ("no receive time",)
    path = next(store.path.rglob("date=2024-08-09/*.arrow" if raw else "date=2024-08-09/*.parquet"))
    assert FileData(path).kinds(spec.name) == {"LEVEL", "TRADE"}
    assert FileData(path).cannot_tell(spec.name) == ("no receive time",)


def forms_day(feed) -> int:
    return int(feed["ts_recv"][-1]) // 86_400_000_000_000 * 86_400_000_000_000


def test_a_day_written_before_kinds_were_kept_is_scanned(
    tmp_path: Path, feed, spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s")
    monkeypatch.setattr(forms, "kind_names", lambda present: None)
    store.write(feed, spec, raw=True)
    monkeypatch.undo()
    assert store.meta(spec.name, "2024-08-09").kinds is None
    assert store.kinds(spec.name) == {"LEVEL", "TRADE"}
    assert forms.kinds_in(next(store.path.rglob("*.arrow"))) == ["LEVEL", "TRADE"]


def test_kinds_of_a_numpy_file(tmp_path: Path, feed, spec) -> None:
    np.save(tmp_path / "f.npy", feed)
    assert open_data(tmp_path / "f.npy", spec).kinds(spec.name) == {"LEVEL", "TRADE"}
