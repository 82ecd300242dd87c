"""Delimited text in blocks: packed files, words and numbers that are wrong, cuts and damage."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hft.data.csv_blocks import Block, CsvFile, decimals
from hft.data.text import BOM
from hft.errors import DataError, SchemaError

KINDS: dict[str, Any] = {"t": "int", "side": {"buy": 1, "sell": -1}, "p": "float", "q": "maybe"}
TEXT = "t,side,p,q,note\n1,buy,10.5,2,a\n2,sell,10.25,,b\n3,buy,11,4,c\n"


def made(folder: Path, text: str | bytes = TEXT) -> Path:
    path = folder / "file.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(path: Path, counts: dict[str, int] | None = None, **options: Any) -> Block:
    where = options.pop("where", {})
    blocks = list(CsvFile(path, **options).blocks(KINDS, {} if counts is None else counts, where))
    names = KINDS if blocks else ()
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in names}
    return Block(columns, np.concatenate([block.lines for block in blocks]), blocks[-1].done)


def want_text(block: Block) -> None:
    assert block.columns["t"].tolist() == [1, 2, 3]
    assert block.columns["side"].tolist() == [1, -1, 1]
    assert block.columns["p"].tolist() == [10.5, 10.25, 11.0]
    assert np.isnan(block.columns["q"]).tolist() == [False, True, False]
    assert block.lines.tolist() == [2, 3, 4]
    assert block.done == 1.0


def zstd(raw: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(raw)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress, zstd])
def test_packed_files_are_known_by_their_first_bytes(pack: Any, tmp_path: Path) -> None:
    want_text(read(made(tmp_path, pack(TEXT.encode()))))


@pytest.mark.parametrize("size", [1, 7, 20, 1000])
def test_blocks_of_any_size(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", size)
    want_text(read(made(tmp_path)))


def test_line_ends_marks_and_a_last_line_without_an_end(tmp_path: Path) -> None:
    want_text(read(made(tmp_path, TEXT.replace("\n", "\r\n"))))
    want_text(read(made(tmp_path, BOM + TEXT.encode())))
    want_text(read(made(tmp_path, TEXT.removesuffix("\n"))))
    with pytest.raises(DataError, match="line 4 is cut"):
        read(made(tmp_path, TEXT.removesuffix("\n")), ended=True)


def test_names_by_position_with_and_without_a_header(tmp_path: Path) -> None:
    names = tuple(KINDS)
    bare = TEXT.partition("\n")[2]
    assert read(made(tmp_path, bare), names=names).lines.tolist() == [1, 2, 3]
    assert read(made(tmp_path, BOM + bare.encode()), names=names).lines.tolist() == [1, 2, 3]
    want_text(read(made(tmp_path), names=names))
    with pytest.raises(SchemaError, match="line 1 has 2 columns, want 4: t, side, p, q"):
        read(made(tmp_path, "1,2\n"), names=names)


def test_only_rows_that_are_wanted(tmp_path: Path) -> None:
    counts: dict[str, int] = {}
    block = read(made(tmp_path), counts, where={"note": "b"})
    assert block.lines.tolist() == [3]
    assert counts == {"rows of other instruments": 2}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x,buy,1,1,", "column t: 'x' is no whole number"),
        ("99999999999999999999,buy,1,1,", "column t: '99999999999999999999' is no whole number"),
        ("4,hold,1,1,", r"column side: 'hold' is none of \['buy', 'sell'\]"),
        ("4,buy,,1,", "column p: '' is no finite number"),
        ("4,buy,nan,1,", "column p: 'nan' is no finite number"),
        ("4,buy,1,-inf,", "column q: '-inf' is no finite number"),
        ("4,buy,1", "3 columns, want 5"),
        ("", "1 columns, want 5"),
        ("4,b\xfcy,1,1,", "column side: 'b.+y' is none of"),
    ],
)
def test_the_first_bad_line_is_named_and_repair_leaves_it_out(
    line: str, says: str, tmp_path: Path
) -> None:
    path = made(tmp_path, (TEXT + line + "\n5,sell,1,1,\n").encode("latin-1"))
    with pytest.raises(DataError, match=f"file.csv: line 5: {says}"):
        read(path)
    counts: dict[str, int] = {}
    assert read(path, counts, repair=True).lines.tolist() == [2, 3, 4, 6]
    assert counts == {"lines unreadable": 1}


def test_damage_gives_the_whole_lines_before_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = "".join(f"{at},buy,{rng.integers(1, 10**9)},1,x\n" for at in range(20_000))
    raw = gzip.compress((TEXT + lines).encode())
    path = made(tmp_path, raw[: len(raw) // 2])
    with pytest.raises(DataError, match=r"damaged after line \d+"):
        read(path)
    counts: dict[str, int] = {}
    block = read(path, counts, repair=True)
    assert 5_000 < len(block.lines) < 15_000
    assert block.lines.tolist() == list(range(2, len(block.lines) + 2))
    assert counts == {"files damaged at the end": 1}
    with pytest.raises(DataError, match="damaged before the end of line 1"):
        read(made(tmp_path, raw[:12]))


def test_what_is_no_text_of_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty file"):
        read(made(tmp_path, ""))
    with pytest.raises(DataError, match="a line of more than 16,777,216 bytes"):
        read(made(tmp_path, TEXT + "x" * 20_000_000))
    with pytest.raises(SchemaError, match="no column 'q'; it has"):
        read(made(tmp_path, "t,side,p\n"))


def test_how_numbers_are_written(tmp_path: Path) -> None:
    words = CsvFile(made(tmp_path)).sample(["p", "note"], 3)
    assert words["p"].words == ["10.5", "10.25"]
    assert words["note"].among(np.array([False, True])) == ["b"]
    assert decimals(words["p"].words) == 2
    assert decimals(["1", "1.50", "3e-7", "x", ""]) == 7
