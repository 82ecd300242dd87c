"""`lstm_mm` with frictions switched on one by one, as one table (docs/frictions.md).

    python backtests/frictions.py [--data FOLDER] [--out TABLE.md] [synth] [binance] [synth_taker]

A row keeps all that the rows above it switched on, so what a friction costs is the difference to
the row above: on the made-up market the mean of several days, with its standard error over them.
The first row is the backtest that people are burnt by: no delay anywhere, and
displayed size that is there again the moment we took it. The latency profile is as slow in the
mean as the constants it replaces, so that its row shows what bursts cost and not what a slower
line would. `lstm_mm` never takes but to flatten; `synth_taker` follows the same signal by taking.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import hft
from hft.data.importing import import_source
from hft.data.sources import open_sources
from hft.data.store import Store

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = "crypto_l2/usdm_btcusdt_20240808.gz"
PROFILE = "same-region"
SEEDS = (11, 12, 13, 14)
"""Days of the made-up market."""
NOTHING: dict[str, Any] = {
    "latency": {"scale": 0.0, "profile": "", "risk": 0},
    "venue": {
        "refill_half_life": "1ns",
        "refill_probability": 1.0,
        "queue_draws": False,
        "fade": 0.0,
        "participation_cap": 0.0,
    },
    "engine": {"bracket": False},
}
HEAD = (
    "| switched on | orders | fills | lots filled | maker | signal age p50 | p99 | impact | net | "
    "change |"
)


def main() -> None:
    """Prints the tables, and writes them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = Path(os.environ.get("HFT_DATA", ROOT.parent / "shared/data"))
    parser.add_argument("--data", type=Path, default=known, help="folder of the real capture")
    parser.add_argument("--out", type=Path, help="file for the tables")
    parser.add_argument("only", nargs="*", choices=[[], "synth", "binance", "synth_taker"])
    args = parser.parse_args()
    lines: list[str] = []
    for name in args.only or ["synth", "binance", "synth_taker"]:
        if name == "binance" and not (args.data / CAPTURE).exists():
            print(f"(binance: no {CAPTURE} in {args.data})")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for line in table(name, args.data, Path(folder)):
                lines.append(line)
                print(line, flush=True)
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


def table(name: str, data: Path, folder: Path) -> Iterator[str]:
    """The lines of one market."""
    recipe, source, strategy = market(name, data, folder)
    spec = None
    last: list[float] = []
    seeds = SEEDS if source is None else (None,)
    for title, changes in frictions(recipe["latency"]):
        merge(recipe, changes)
        reports = [hft.backtest(strategy, source, recipe=recipe, seed=seed) for seed in seeds]
        if spec is None:
            spec = reports[0].run.instruments[0].spec
            days = f", mean of {len(seeds)} days" if len(seeds) > 1 else ""
            money = spec.currency or "quote currency"
            yield from ("", f"**{name}**, money in {money}{days}", "", HEAD)
            yield "|---" * (HEAD.count("|") - 1) + "|"
        nets = [report.figures["headline"]["net"] for report in reports]
        yield row(title, reports, nets, last)
        last = nets


def market(name: str, data: Path, folder: Path) -> tuple[dict[str, Any], Path | None, str]:
    """The recipe with no friction, what to replay, and the strategy."""
    from hft.recipe_files import load_recipe

    maker = "backtests/lstm_mm_binance.toml" if name == "binance" else "backtests/lstm_mm.toml"
    recipe = load_recipe(ROOT / maker)
    source = None
    if name == "binance":
        source = folder / "store"
        for each in open_sources("binance", [data / CAPTURE]):
            import_source(each, Store(source), clock_offset="auto")
    strategy = str(ROOT / "strategies/lstm_mm.py")
    if name == "synth_taker":
        strategy = taker_file(folder)
        recipe["params"] = {}
        recipe["venue"]["taker_fee"] = 0.0  # else nothing would be worth taking
    merge(recipe, NOTHING)
    return recipe, source, strategy


TAKER = '''
from hft import BUY, IOC, SELL, Model, Params, Strategy


class TakerParams(Params, frozen=True):
    lots: int = 20
    max_lots: int = 200
    edge_ticks: float = 1.0


class LstmTaker(Strategy):
    """Crosses the spread where the forecast is worth more than half of it and an edge."""

    params: TakerParams
    model = Model({bundle!r})

    def on_signal(self, s):
        inst, p = s.instrument, self.params
        book, held = self.book(inst), self.position(inst).lots
        if not book.two_sided or self.orders(inst):
            return
        alpha = s["alpha_ticks"]
        for side, price in ((BUY, book.ask), (SELL, book.bid)):
            worth = side * (book.mid + alpha - price)
            if worth > p.edge_ticks and side * held < p.max_lots:
                self.submit(inst, side, p.lots, price, tif=IOC, cause=s)
'''


def taker_file(folder: Path) -> str:
    """A strategy that takes on the same model."""
    file = folder / "lstm_taker.py"
    file.write_text(TAKER.format(bundle=str(ROOT / "strategies/lstm_mm.bundle")))
    return str(file)


def frictions(constants: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and changes, in the order of the pipe."""
    compute, infer = constants["compute"], constants["inference"]
    entry, response = constants["entry"], constants["response"]
    nothing = {"compute": 0, "inference": 0, "entry": 0, "response": 0}
    yield "nothing", {}
    yield "feed delay, as recorded", {"latency": {"scale": 1.0, "feed": "data", **nothing}}
    yield (
        f"inference {infer}, compute {compute}",
        {"latency": {"compute": compute, "inference": infer}},
    )
    yield (
        f"orders {entry} there, {response} back",
        {"latency": {"entry": entry, "response": response}},
    )
    mean = means(PROFILE)
    yield f"the same as long as profile `{PROFILE}` is in the mean", {"latency": mean}
    yield (
        f"profile `{PROFILE}`, bursts by message rate",
        {"latency": {"profile": PROFILE, **dict.fromkeys(mean, "profile")}},
    )
    yield "risk gate 1us a message", {"latency": {"risk": "1us"}}
    yield "cancels drawn, not averaged", {"venue": {"queue_draws": True}}
    yield "what we take is gone, half-life 1s", {"venue": {"refill_half_life": "1s"}}
    yield "... of which 60 % never comes back", {"venue": {"refill_probability": 0.4}}
    yield "a tenth of the depth fades", {"venue": {"fade": 0.1}}
    yield (
        "our push of the price",
        {
            "venue": {
                "impact": {
                    "unit": "spread_per_depth",
                    "weights": [0.1],
                    "half_lives": ["5s"],
                    "permanent": 0.05,
                }
            }
        },
    )
    yield "never above a tenth of the volume", {"venue": {"participation_cap": 0.1}}
    yield "every cancel behind us (risk averse)", {"venue": {"queue": "risk_averse"}}


def means(profile: str) -> dict[str, str]:
    """A profile's legs as constants of the same mean."""
    from hft.execution.profiles import load_profile

    loaded = load_profile(profile)
    legs = {}
    for leg in ("entry", "response"):
        took = loaded.numbers(f"{leg}_ns", loaded.rows([leg]))
        legs[leg] = f"{round(float(took.mean()))}ns"
    return legs


def merge(recipe: dict[str, Any], changes: dict[str, Any]) -> None:
    """Sets the changed keys, section by section."""
    for section, values in changes.items():
        recipe[section] = recipe.get(section, {}) | values


def row(title: str, reports: list[hft.Report], nets: list[float], last: list[float]) -> str:
    """A line of the table: means over the days."""
    heads = [report.figures["headline"] for report in reports]
    ages = [report.figures["latency"]["signal age at venue"] for report in reports]
    fills = [report.run.fills for report in reports]
    cells = [
        f"{mean([head['orders'] for head in heads]):,.0f}",
        f"{mean([head['fills'] for head in heads]):,.0f}",
        f"{mean([each['lots'].sum() for each in fills]):,.0f}",
        f"{mean([head['maker_share'] or 0 for head in heads]):.0%}",
        *(f"{mean([age[q] or 0 for age in ages]) / 1e6:.2f} ms" for q in ("p50", "p99")),
        f"{mean([each['impact'].sum() for each in fills]) / 1e9:,.2f}",
        f"{mean(nets):+,.2f}",
        changed(nets, last),
    ]
    return f"| {title} | " + " | ".join(cells) + " |"


def changed(nets: list[float], last: list[float]) -> str:
    """Mean difference to the row above, with its standard error where there are several days."""
    if not last:
        return ""
    moves = [now - before for now, before in zip(nets, last, strict=True)]
    error = f" ± {stdev(moves) / math.sqrt(len(moves)):,.2f}" if len(moves) > 1 else ""
    return f"{mean(moves):+,.2f}{error}"


if __name__ == "__main__":
    main()
