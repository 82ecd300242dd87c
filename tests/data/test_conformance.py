"""Every importer: order, conservation, idempotence, truncation, memory, clear refusals."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import conformance
import numpy as np
import pytest
from conformance import CASES, Case, Written, kinds_of, resized, rows_of, traded

from hft.data import Source, Store, check, import_source
from hft.data.sources import FORMATS
from hft.errors import DataError, HftError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, Kind

NOISE = 12 << 20  # bytes that allocators keep back however long a file is

BY_CASE = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def made(case: Case, folder: Path, rows: int = 0) -> Written:
    folder.mkdir(parents=True, exist_ok=True)
    return case.write(folder, rows or case.rows)


def imported(sources: list[Source], store: Store, **options: Any) -> Any:
    """All sources of one file in the store, and their rows read back."""
    names = [import_source(source, store, **options).spec.name for source in sources]
    return [store.read(name) for name in names]


def files_in(store: Store) -> list[str]:
    return sorted(str(p) for p in store.path.rglob("*"))


def test_every_format_has_a_case() -> None:
    assert {case.form for case in CASES} == {*FORMATS, "template"}


@BY_CASE
def test_rows_are_in_order_and_packets_end(case: Case, tmp_path: Path) -> None:
    sources = case.open(made(case, tmp_path))
    for source, rows in zip(sources, imported(sources, Store(tmp_path / "s")), strict=True):
        want_sound(rows, source)


def want_sound(rows: Any, source: Source) -> None:
    check(rows, source.spec).require()
    for seen in (Flag.SEEN_BY_US, Flag.SEEN_BY_VENUE):
        want_packets(rows[rows["flags"] & SEEN_BY_BOTH & seen != 0])


def want_packets(rows: Any) -> None:
    """LAST where the venue's time goes on and at the end, and never in a half rebuilt book.

    A packet may reach us in several parts, at several times.
    """
    last = rows["flags"] & Flag.LAST != 0
    moves = np.append(np.diff(rows["ts_event"]) != 0, True)
    whole = rows["flags"] & SEEN_BY_BOTH == SEEN_BY_BOTH
    assert last[moves & whole].all(), f"no LAST at row {int((moves & whole & ~last).argmax())}"
    begins = np.cumsum(rows["kind"] == Kind.SNAPSHOT_BEGIN)
    ends = np.cumsum(rows["kind"] == Kind.SNAPSHOT_END)
    assert not last[begins > ends].any(), "LAST inside a snapshot"


@BY_CASE
def test_every_row_and_lot_of_the_file_arrives(case: Case, tmp_path: Path) -> None:
    written = made(case, tmp_path)
    rows = rows_of(case.open(written))
    assert kinds_of(rows) == written.kinds
    assert traded(rows) == written.traded_lots


@BY_CASE
def test_a_second_pass_is_the_first(case: Case, tmp_path: Path) -> None:
    written = made(case, tmp_path)
    sources = case.open(written)
    first, counts = rows_of(sources), [dict(source.counts) for source in sources]
    assert (rows_of(sources) == first).all()
    assert [source.counts for source in sources] == counts
    assert (rows_of(case.open(written)) == first).all()


@BY_CASE
def test_importing_twice_is_refused_and_overwriting_changes_nothing(
    case: Case, tmp_path: Path
) -> None:
    sources, store = case.open(made(case, tmp_path)), Store(tmp_path / "s")
    imported(sources, store)
    hashes = [store.hash(source.spec.name) for source in sources]
    for source in sources:
        with pytest.raises(DataError, match="already has"):
            import_source(source, store)
    assert [store.hash(source.spec.name) for source in sources] == hashes
    imported(sources, store, overwrite=True)
    assert [store.hash(source.spec.name) for source in sources] == hashes


@pytest.mark.parametrize("size", [400, 1700])
@BY_CASE
def test_rows_do_not_depend_on_blocks(
    case: Case, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = made(case, tmp_path)
    whole = rows_of(case.open(written))
    for name, value in resized(case, size):
        monkeypatch.setattr(name, value)
    sources = case.open(written)
    assert sum(1 for source in sources for _ in source.batches()) > len(sources)
    assert (rows_of(sources) == whole).all()


CUTS = (0, 1, 2, 9, 0.1, 0.25, 0.4, 0.5, 0.51, 0.52, 0.53, 0.75, 0.9, 0.99, -9, -8, -5, -2, -1)


@BY_CASE
def test_a_file_that_was_cut_is_refused_or_mended_to_what_came_before(
    case: Case, tmp_path: Path
) -> None:
    written = made(case, tmp_path, 1200)
    whole, store, mended = rows_of(case.open(written)), Store(tmp_path / "s"), 0
    for path in written.paths:
        raw = path.read_bytes()
        for place in CUTS:
            path.write_bytes(raw[: int(place * len(raw)) if isinstance(place, float) else place])
            refused = refuses(case, written, whole, store)
            mended += mends(case, written, whole, refused=refused)
        path.write_bytes(raw)
    assert bool(mended) == (case.cut != "nothing")


def refuses(case: Case, written: Written, whole: Any, store: Store) -> bool:
    """Without repair: a typed error and an untouched store, or a file that is just shorter."""
    try:
        sources = case.open(written)
        rows = rows_of(sources)
        for source in sources:
            import_source(source, store)
    except HftError:
        assert not files_in(store)
        assert not store.path.exists()
        return True
    want_beginning(case, rows, whole)
    for path in reversed(sorted(store.path.rglob("*"))):
        path.unlink() if path.is_file() else path.rmdir()
    store.path.rmdir()
    return False


def mends(case: Case, written: Written, whole: Any, *, refused: bool) -> bool:
    """With repair: what came before the cut, and a count that says so."""
    try:
        sources = case.open(written, repair=True)
        rows = rows_of(sources)
    except HftError:
        return False
    want_beginning(case, rows, whole)
    if refused and len(rows):
        said = " ".join(name for source in sources for name in source.counts)
        assert any(word in said for word in ("damaged", "cut", "unreadable")), said
    return bool(len(rows))


def want_beginning(case: Case, rows: Any, whole: Any) -> None:
    """`rows` are the first of `whole`, but for how the packet at the cut ends."""
    if case.cut == "merged":
        return
    rows, ends = rows.copy(), np.flatnonzero(rows["flags"] & Flag.LAST != 0)
    if case.cut == "open":
        sure = len(ends) - case.packets
        rows = rows[: ends[sure - 1] + 1 if sure > 0 else 0]
    if len(rows) and rows["kind"][-1] == Kind.SNAPSHOT_END:
        rows = rows[:-1]
    assert len(rows) <= len(whole)
    whole = whole[: len(rows)].copy()
    for part in (rows, whole):
        part["flags"][-1:] &= ~np.uint16(Flag.LAST)
    assert (rows == whole).all()


BY_PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


@BY_PROC
@BY_CASE
def test_memory_does_not_grow_with_the_file(case: Case, tmp_path: Path) -> None:
    short, long = (growth(case, tmp_path, rows) for rows in (case.long, 8 * case.long))
    assert long <= 1.5 * max(short, NOISE), f"{long >> 20} MiB, a file of an eighth {short >> 20}"


@BY_PROC
def test_memory_is_measured_so_that_held_rows_are_seen(tmp_path: Path) -> None:
    case = CASES[0]
    assert growth(case, tmp_path, 8 * case.long, "hold") > 8 * case.long * EVENT.itemsize
    assert growth(case, tmp_path, case.long) < NOISE


def growth(case: Case, folder: Path, rows: int, *more: str) -> int:
    """Bytes by which reading so many rows raises the peak of a process that has read a few."""
    for count in (100, rows):
        if not (folder / str(count)).exists():
            written = made(case, folder / str(count), count)
            (folder / str(count) / "paths").write_text("\n".join(map(str, written.paths)))
    command = [sys.executable, conformance.__file__, case.name, str(folder), str(rows), *more]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def refused(case: Case, paths: list[Path], columns: Path | None, store: Store) -> str:
    """The message of the refusal, at opening or at reading."""
    try:
        imported(case.sources(paths, columns), store)
    except HftError as error:
        assert not store.path.exists()
        return str(error)
    pytest.fail(f"{[p.name for p in paths]} went through as {case.form}")


@BY_CASE
def test_what_is_no_such_file_is_refused_by_name(case: Case, tmp_path: Path) -> None:
    written, store = made(case, tmp_path / "good"), Store(tmp_path / "s")
    for at, path in enumerate(written.paths):
        for wrong in ("missing", "empty", "folder", "noise", "text"):
            bad = tmp_path / wrong / path.name
            bad.parent.mkdir(exist_ok=True)
            if wrong == "folder":
                bad.mkdir()
            elif wrong != "missing":
                text = {"empty": b"", "noise": bytes(range(255, -1, -1)) * 40}
                bad.write_bytes(text.get(wrong, b"to be,or not\nto be,that\n" * 30))
            paths = [*written.paths[:at], bad, *written.paths[at + 1 :]]
            assert path.name in refused(case, paths, written.columns, store), wrong


@BY_CASE
def test_files_of_other_formats_are_refused(case: Case, tmp_path: Path) -> None:
    good = made(case, tmp_path / "good", 50)
    for other in CASES:
        written = made(other, tmp_path / "other", 50)
        paths = (written.paths * len(good.paths))[: len(good.paths)]
        if other.form != case.form and not case.name.startswith("csv"):
            refused(case, paths, good.columns, Store(tmp_path / "s"))


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so for a moment we are not root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@BY_CASE
def test_a_file_we_may_not_read_is_refused(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        written = made(case, Path(folder))
        rows_of(case.open(written))  # all that is imported lazily is there now
        for path in written.paths:
            path.chmod(0)
        with as_nobody():
            message = refused(case, written.paths, written.columns, Store(Path(folder) / "s"))
    assert written.paths[0].name in message


REAL = [case for case in CASES if case.real]


@pytest.mark.parametrize("case", REAL, ids=[case.name for case in REAL])
def test_real_files(
    case: Case, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [data_dir / name for name in case.real]
    for path in paths:
        if not path.is_file():
            pytest.skip(f"no {path}")
    real = conformance.real(case)
    sources, store = real.sources(paths), Store(tmp_path / "s")
    for source, rows in zip(sources, imported(sources, store, clock_offset="auto"), strict=True):
        want_sound(rows, source)
    hashes = [store.hash(source.spec.name) for source in sources]
    for name, value in resized(case, 1 << 16):
        monkeypatch.setattr(name, value)
    imported(real.sources(paths), store, clock_offset="auto", overwrite=True)
    assert [store.hash(source.spec.name) for source in sources] == hashes
