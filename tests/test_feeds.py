"""Feeds that are generated: made once where they fit, anew where they do not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hft.data.synth import symbol_chunks
from hft.feeds import kept, open_feeds
from hft.recipe_checks import to_recipe


def test_kept_rows_are_those_that_were_made() -> None:
    recipe = to_recipe({"data": {"chunk_rows": 5_000, "synth": {"duration_s": 20.0}}})
    (feed,) = open_feeds(recipe)
    made = np.concatenate(list(symbol_chunks(recipe.data.synth, 0, rows=5_000)))
    assert len(made) > 10_000
    for _ in range(2):
        assert (np.concatenate(list(feed.chunks())) == made).all()
    one, other = next(feed.chunks()), next(feed.chunks())
    assert one is other
    (day,) = feed.days.names()
    assert (np.concatenate(list(feed.days.chunks(day))) == made).all()


def test_more_rows_than_are_kept_are_made_anew() -> None:
    begun = []

    def chunks() -> Iterator[np.ndarray]:
        begun.append(1)
        for k in range(3):
            yield np.full(10, k)

    for most, times in ((29, 3), (30, 1)):
        begun.clear()
        rows = kept(chunks, most)
        next(rows())  # left before the end: nothing is kept of it
        begun.clear()
        for _ in range(3):
            assert np.concatenate(list(rows())).tolist() == [0] * 10 + [1] * 10 + [2] * 10
        assert len(begun) == times
