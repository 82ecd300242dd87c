"""Every importer on random, flipped, cut and spliced files: a typed error or a sound import."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from conformance import CASES, Case, Written, rows_of
from damage import cut, double, drop, flip

from hft.data import Source, Store, check, import_source
from hft.errors import HftError

ROUNDS = 3 * hypothesis.settings().max_examples // 10  # 30; 6,000 in `make nightly`
ROWS = 200

Way = Callable[[random.Random, bytes], bytes]


def noise(rng: random.Random, raw: bytes) -> bytes:
    return rng.randbytes(rng.randrange(2 * len(raw)))


def noise_after_a_good_start(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))] + rng.randbytes(rng.randrange(1, 500))


def change_a_byte(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randrange(len(raw))
    return (
        raw[:at] + rng.choice([b"\0", b"\xff", b"-", b"9", b"\n", b",", b"e", b" "]) + raw[at + 1 :]
    )


def splice(rng: random.Random, raw: bytes) -> bytes:
    first, second = sorted(rng.randrange(len(raw)) for _ in range(2))
    return raw[first:second] + raw[: rng.randrange(len(raw))] + raw[second:]


def move_lines(rng: random.Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    start = rng.randrange(len(lines))
    block = lines[start : start + rng.randrange(1, 9)]
    rest = lines[:start] + lines[start + len(block) :]
    at = rng.randrange(len(rest) + 1)
    return b"\n".join(rest[:at] + block * rng.choice([1, 2]) + rest[at:])


WAYS: tuple[Way, ...] = (
    flip,
    change_a_byte,
    cut,
    drop,
    move_lines,
    double,
    splice,
    noise_after_a_good_start,
    noise,
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_damaged_file_is_refused_or_read_soundly(case: Case, tmp_path: Path) -> None:
    written = case.write(tmp_path, ROWS)
    good = [path.read_bytes() for path in written.paths]
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        way = WAYS[seed % len(WAYS)]
        at = rng.randrange(len(good))
        written.paths[at].write_bytes(way(rng, good[at]))
        for repair in (False, True):
            try:
                survive(case, written, Store(tmp_path / "s"), repair=repair)
            except Exception as error:
                error.add_note(
                    f"seed {seed}, {way.__name__} of {written.paths[at].name}, {repair=}"
                )
                raise
        written.paths[at].write_bytes(good[at])
    assert len(rows_of(case.open(written))) >= ROWS / 2


def survive(case: Case, written: Written, store: Store, *, repair: bool) -> None:
    """Import all sources; a refused one leaves nothing, the others are sound."""
    try:
        sources = case.open(written, repair=repair)
    except HftError:
        assert not store.path.exists()
        return
    for source in sources:
        before = files_in(store)
        if imports(source, store, repair=repair):
            assert check(store.read(source.spec.name), source.spec).ok
        else:
            assert files_in(store) == before
    shutil.rmtree(store.path, ignore_errors=True)


def files_in(store: Store) -> list[Path]:
    return sorted(store.path.rglob("*"))


def imports(source: Source, store: Store, *, repair: bool) -> bool:
    try:
        import_source(source, store, repair=repair)
    except HftError:
        return False
    return True
