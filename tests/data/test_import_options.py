"""Options of `hft data import` that not every format has a use for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.data import Store
from hft.data.sources import FORMATS
from hft.errors import HftError
from hft.types import Kind

SPREAD = """\
time,what,price,size
1700000000000100,bid,-0.02,300
1700000000000100,ask,0.01,200
1700000000004200,sell,-0.02,100
1700000000009900,ask,0,5
"""


def run(*args: str) -> str:
    result = CliRunner().invoke(cli, ["data", *args])
    if isinstance(result.exception, HftError):
        return str(result.exception)
    return result.output


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setitem(FORMATS, "template", "hft.adapters.template")
    (tmp_path / "spread.csv").write_text(SPREAD)
    file, store = str(tmp_path / "spread.csv"), str(tmp_path / "store")
    return ("import", "template", file, "--store", store, "--symbol", "S", "--tick", "0.01")


def test_prices_below_zero_are_refused_unless_they_are_said_to_be_valid(
    imports: tuple[str, ...], tmp_path: Path
) -> None:
    said = run(*imports)
    assert "row 0 (line 2): price of a LEVEL row is -2 ticks" in said
    assert "--negative-price" in said
    assert "4 rows" in run(*imports, "--negative-price")
    store = Store(tmp_path / "store")
    assert store.spec("S.TEMPLATE").negative_price
    rows = store.read("S.TEMPLATE")
    assert rows["price"][rows["kind"] == Kind.LEVEL].tolist() == [-2, 1, 0]
    assert "4 rows are sound" in run("check", str(tmp_path / "store"), "--book")


def test_an_option_of_other_formats_is_refused(imports: tuple[str, ...]) -> None:
    assert run(*imports, "--date", "2020-01-30") == (
        "--date is for itch, lobster, shanghai; template files have no use for it"
    )
    assert run(*imports, "--map", "a.toml") == (
        "--map is for csv, parquet; template files have no use for it"
    )
    assert "'30.1.2020' is no day such as 2020-01-30" in run(*imports, "--date", "30.1.2020")


def test_a_file_that_is_given_twice_is_refused(imports: tuple[str, ...], tmp_path: Path) -> None:
    again = str(tmp_path / ".." / tmp_path.name / "spread.csv")
    assert run(*imports, again) == f"{again}: given twice, want each file once"


def test_a_clock_offset_that_is_no_duration_is_named(imports: tuple[str, ...]) -> None:
    said = run(*imports, "--clock-offset", "5x")
    assert "clock offset: '5x' is not a duration" in said
    assert said.endswith("d, or auto")


def test_overwriting_takes_several_instruments_but_each_once(
    imports: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "more.csv").write_text(SPREAD)
    more = (*imports, str(tmp_path / "more.csv"), "--negative-price", "--overwrite")
    assert "one source of S.TEMPLATE at a time, was given 2" in run(*more)
    rows = "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n"
    rows += "x,A,1700000000000000,1700000000000100,1,buy,10.5,2\n"
    rows += "x,B,1700000000000000,1700000000000100,1,buy,10.5,2\n"
    (tmp_path / "trades.csv").write_text(rows)
    two = ("import", "tardis", str(tmp_path / "trades.csv"), "--store", str(tmp_path / "s"))
    assert run(*two).count("1 rows") == run(*two, "--overwrite").count("1 rows") == 2
