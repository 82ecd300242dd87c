"""Text whose columns stay bytes: blocks that are found again, quotes, separators, packed files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hft.data.arrow_columns import words_of
from hft.data.text import BOM, TextFile
from hft.data.text_blocks import TextReader
from hft.errors import DataError

ROWS = 200
TEXT = "symbol,qty\n" + "".join(f"{'AB'[at // 20 % 2]},{at}\n" for at in range(ROWS))


def made(folder: Path, text: bytes) -> TextFile:
    path = folder / "file.csv"
    path.write_bytes(text)
    return TextFile(path)


@pytest.mark.parametrize("mark", [b"", BOM])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_blocks_that_hold_a_word_are_found_again(
    pack: Any, mark: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hft.data.text.BLOCK_BYTES", 60)
    reader = TextReader(made(tmp_path, pack(mark + TEXT.encode())), ["symbol", "qty"])
    blocks = [(block, words_of(block.column("symbol"))[0]) for block in reader.blocks()]
    assert sum(len(block) for block, _ in blocks) == ROWS
    only = {block.place for block, words in blocks if "B" in words}
    assert 0 < len(only) < len(blocks)
    again = list(reader.blocks(only))
    assert {block.place for block in again} == only
    for block in again:
        assert (block.integers("qty") == block.lines - 2).all()
    held = np.concatenate([block.integers("qty") for block in again])
    assert set(held) >= {at for at in range(ROWS) if at // 20 % 2}


def test_quotes_and_separators(tmp_path: Path) -> None:
    file = made(tmp_path, b'"a b";"c"\n"1";"x;y"\n2;"z"\n')
    (block,) = TextReader(file, ["a b", "c"], separator=";").blocks()
    assert block.integers("a b").tolist() == [1, 2]
    assert words_of(block.column("c"))[0] == ["x;y", "z"]


def test_a_line_break_in_quotes_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path, b'a,b\n1,"x\ny"\n2,z\n')
    with pytest.raises(DataError, match=r"file.csv.*line"):
        list(TextReader(file, ["a", "b"]).blocks())


def test_what_comes_before_a_damage_is_kept_on_demand(tmp_path: Path) -> None:
    noise = "".join(f"A,{at * 7919 % 100_003}\n" for at in range(50_000))
    packed = gzip.compress(("symbol,qty\n" + noise).encode())
    file = made(tmp_path, packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"file.csv: damaged after line \d+"):
        list(TextReader(file, ["qty"]).blocks())
    reader = TextReader(file, ["qty"], repair=True)
    assert 1_000 < sum(len(block) for block in reader.blocks()) < 49_000
    assert reader.counts == {"files damaged at the end": 1}
