"""What real files say, printed with `pytest -s`; only the sense of it is tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from hft.data.importing import import_source
from hft.data.sources import open_sources
from hft.data.store import Store
from hft.errors import DataError
from hft.fitting import show
from hft.fitting.impact import fit_impact
from hft.fitting.queue import fit_queue
from hft.fitting.refill import fit_refill
from hft.fitting.tape import Source

MOUTAI = ("shanghai", "cn_l3/sse_600519_20230201_tonglian.zip")
FIVE = (
    "shanghai",
    "cn_l3/sse_5stocks_20230711_SHorders.zip",
    "cn_l3/sse_5stocks_20230711_SHtrans.zip",
)
ES = ("databento", "dbn/esh4-glbx-mdp3-20231225.mbo.dbn.zst")
USDM = ("binance", "crypto_l2/usdm_btcusdt_20240808.gz")
CONSOLE = Console()


def sources(files: tuple[str, ...], data: Path, folder: Path) -> list[Source]:
    form, *names = files
    paths = [data / name for name in names]
    if missing := [path.name for path in paths if not path.exists()]:
        pytest.skip(f"no {', '.join(missing)} among the market data")
    if form == "databento":
        pytest.importorskip("databento_dbn", reason="DBN files are read with databento-dbn")
    store = Store(folder)
    options = {"clock_offset": "auto"} if form == "binance" else {}
    for source in open_sources(form, paths):
        import_source(source, store, **options)
    return [Source(store, name, str(folder)) for name in store.symbols()]


@pytest.mark.parametrize("files", [MOUTAI, FIVE, ES], ids=["600519", "five stocks", "ES"])
def test_cancels_of_real_orders(files: tuple[str, ...], data_dir: Path, tmp_path: Path) -> None:
    for source in sources(files, data_dir, tmp_path / "store"):
        fit = fit_queue(source)
        show.show_queue(fit, CONSOLE)
        assert 0.2 < fit.n.low < fit.n.value < fit.n.high < 20
        assert fit.informative > 1_000


def test_orders_of_es_leave_mostly_from_the_back(data_dir: Path, tmp_path: Path) -> None:
    fit = fit_queue(sources(ES, data_dir, tmp_path / "store")[0])
    assert fit.n.low > 2
    # ... but not as Beta(n, 1) would have it: more from the front, and more from the very end.
    assert fit.curve[20] > 4 * 0.2**fit.n.value
    assert fit.curve[90] < 0.9**fit.n.value


@pytest.mark.parametrize("files", [ES, USDM], ids=["ES", "USD-M"])
def test_depth_and_price_after_real_trades(
    files: tuple[str, ...], data_dir: Path, tmp_path: Path
) -> None:
    source = sources(files, data_dir, tmp_path / "store")[0]
    refill = fit_refill(source)
    show.show_refill(refill, CONSOLE)
    assert refill.untold  # an hour and six minutes are not enough
    impact = fit_impact(source)
    show.show_impact(impact, CONSOLE)
    assert impact.walked > 0
    assert impact.ofi is not None
    assert impact.ofi.beta > 0
    assert impact.ofi.r2 > 0.1


def test_levels_of_a_real_venue_do_not_show_places(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot tell the queue model's n"):
        fit_queue(sources(USDM, data_dir, tmp_path / "store")[0])
