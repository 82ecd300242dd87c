"""Ours against hftbacktest 2.4 on the same feeds and rules, in turn, in one run: `make bench-peer`.

A ratio is printed only where both sides did the same work: as many orders and fills, the same cash
and fees, the same touch at the end. Figures are medians; where other work disturbs the
machine, the ratio of the fastest runs says more. What they mean is in docs/speed.md. The
peer may live in another interpreter (`--peer-python`), which also needs numba and NumPy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from peer_strategies import INSTRUMENTS, SPEC
from turns import Worker, cpu

from hft.adapters.binance import BinanceCapture
from hft.adapters.hftbacktest import EVENT_DTYPE, to_events
from hft.data.importing import import_source
from hft.data.store import Store
from hft.types import Kind

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CAPTURE = Path("crypto_l2/usdm_btcusdt_20240808.gz")
ROWS, MANY_ROWS, SEED = 5_000_000, 1_200_000, 7


@dataclass(frozen=True)
class Comparison:
    """A line of the table: our case, the peer's that does the same work, and the ratio we want."""

    ours: str
    peer: str
    aim: float
    unit: str = "s"
    """`s`: of wall time; `/s`: packets a second."""


COMPARISONS = {
    "replay": Comparison("replay", "replay", 4),
    "replay_roi": Comparison("replay", "replay_roi", 3),
    "replay_python": Comparison("replay_python", "replay", 3),
    "real": Comparison("real", "real", 4),
    "real_roi": Comparison("real", "real_roi", 2.3),
    "mm": Comparison("mm", "mm", 2),
    "mm_handles": Comparison("mm_handles", "mm", 0.9),
    "mm_if_changed": Comparison("mm_if_changed", "mm", 3),
    "grid": Comparison("grid", "grid", 5),
    "grid_int": Comparison("grid_int", "grid", 3),
    "l3": Comparison("l3", "l3", 5),
    "l3_grid": Comparison("l3_grid", "l3_grid", 5),
    "multi": Comparison("multi", "multi", 8),
    "disk_raw": Comparison("disk_raw", "disk", 5),
    "disk_parquet": Comparison("disk_parquet", "disk", 1.4),
    "packets_read": Comparison("packets_read", "packets", 4e6, "/s"),
    "packets_quote": Comparison("packets_quote", "packets", 2e6, "/s"),
}


def main() -> None:
    """Prepares the feeds, runs every case, prints the table and writes build/bench/peer.json."""
    args = arguments()
    missing = what_is_missing(args.peer_python)
    if missing:
        print(f"bench-peer skipped: {args.peer_python} {missing}; pip install -e '.[peer]'")
        return
    args.data.mkdir(parents=True, exist_ok=True)
    prepare_common(args.data, args.peer_python)
    prepare_orders(args.data, args.peer_python)
    real = prepare_real(args.data, args.real)
    chosen = {n: c for n, c in COMPARISONS.items() if not args.only or n in args.only}
    if not real:
        print(f"no real feed: {args.real / CAPTURE} is absent")
        chosen = {n: c for n, c in chosen.items() if c.ours != "real"}
    print(machine(args.peer_python))
    results = measure(chosen, args)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(results, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter of the peer")
    parser.add_argument(
        "--data", type=Path, default=ROOT / "build/bench/data", help="feeds, 1.8 GB"
    )
    real = Path(os.environ.get("HFT_DATA", ROOT.parent / "shared/data"))
    parser.add_argument("--real", type=Path, default=real, help="folder of real captures")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench/peer.json")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("only", nargs="*", metavar="CASE", help=" ".join(COMPARISONS))
    args = parser.parse_args()
    unknown = set(args.only) - set(COMPARISONS)
    if unknown:
        parser.error(
            f"unknown case {', '.join(sorted(unknown))}; there are {', '.join(COMPARISONS)}"
        )
    return args


def what_is_missing(python: str) -> str:
    """Why the peer cannot run, or nothing."""
    probe = "import hftbacktest, numba"
    try:
        done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"cannot be started ({error.strerror})"
    return f"says: {done.stderr.strip().splitlines()[-1]}" if done.returncode else ""


# ---- feeds ----------------------------------------------------------------------------


def prepare_common(data: Path, peer_python: str) -> None:
    """The synthetic feed: the peer's rows, ours, and two stores of them."""
    if not (data / "l2.npy").exists():
        make_feed("levels", data / "l2.npy", peer_python)
    if (data / "parquet").exists():
        return
    rows = np.load(data / "l2.npy")
    events = to_events(rows, SPEC)
    part = MANY_ROWS // INSTRUMENTS
    np.save(data / "l2.events.npy", events)
    np.save(data / "part.npy", rows[:part])
    np.save(data / "part.events.npy", events[:part])
    Store(data / "raw").write(events, SPEC, raw=True)
    Store(data / "parquet").write(events, SPEC)


def prepare_orders(data: Path, peer_python: str) -> None:
    """The same instrument order by order: the peer's rows and ours."""
    if not (data / "l3.npy").exists():
        make_feed("orders", data / "l3.npy", peer_python)
    if not (data / "l3.events.npy").exists():
        np.save(data / "l3.events.npy", to_events(np.load(data / "l3.npy"), SPEC))


def make_feed(kind: str, out: Path, peer_python: str) -> None:
    """Runs feed.py, which needs the peer's numba."""
    subprocess.run(
        [peer_python, str(HERE / "feed.py"), kind, str(ROWS), str(out), str(SEED)], check=True
    )


def prepare_real(data: Path, folder: Path) -> bool:
    """A real capture through our importer, and the same rows for the peer; False: there is none."""
    if not (folder / CAPTURE).exists():
        return False
    if (data / "real.npy").exists():
        return True
    store = Store(data / "real")
    capture = BinanceCapture(folder / CAPTURE, tick=SPEC.tick, lot=SPEC.lot)
    done = import_source(capture, store, clock_offset="auto", overwrite=True)
    events = store.read(done.spec.name)
    # The book starts empty, so the marks around its snapshot carry nothing the peer needs.
    events = events[(events["kind"] == Kind.LEVEL) | (events["kind"] == Kind.TRADE)]
    np.save(data / "real.events.npy", events)
    np.save(data / "real.npy", as_peer(events))
    return True


def as_peer(events: np.ndarray) -> np.ndarray:
    """EVENT rows of levels and trades in the peer's layout."""
    both = np.uint64(1 << 31 | 1 << 30)
    side = np.where(events["side"] > 0, 1 << 29, 1 << 28).astype(np.uint64)
    kind = np.where(events["kind"] == Kind.LEVEL, 1, 2).astype(np.uint64)
    rows = np.zeros(len(events), EVENT_DTYPE)
    rows["ev"] = both | side | kind
    rows["exch_ts"], rows["local_ts"] = events["ts_event"], events["ts_recv"]
    rows["px"] = np.round(events["price"] * SPEC.tick, 1)
    rows["qty"] = np.round(events["qty"] * SPEC.lot, 3)
    return rows


# ---- measuring ----------------------------------------------------------------------------


def measure(chosen: dict[str, Comparison], args: argparse.Namespace) -> dict[str, Any]:
    """Every case in turn with the peer's, a line of the table each."""
    ours = Worker(sys.executable, str(HERE / "own_worker.py"), str(args.data))
    peer = Worker(args.peer_python, str(HERE / "peer_worker.py"), str(args.data))
    print("| case | ours | the peer | ratio | of the fastest | aim | orders | fills |")
    print("|---|---|---|---|---|---|---|---|")
    results = {}
    try:
        for name, case in chosen.items():
            results[name] = compare(name, case, ours, peer, args.reps)
    finally:
        ours.close()
        peer.close()
    return results


def compare(name: str, case: Comparison, ours: Worker, peer: Worker, reps: int) -> dict[str, Any]:
    """One untimed run a side, then `reps` in turn."""
    mine, theirs = ours.run(case.ours), peer.run(case.peer)
    if case.unit == "s":
        same_work(name, mine["work"], theirs["work"])
    own_s, peer_s = [], []
    for _ in range(reps):
        own_s.append(ours.run(case.ours)["wall_s"])
        peer_s.append(peer.run(case.peer)["wall_s"])
    own, other = statistics.median(own_s), statistics.median(peer_s)
    best = min(peer_s) / min(own_s)
    tail = f"| {mine['work']['orders']:,} | {mine['work']['fills']:,} |"
    if case.unit == "/s":
        rate, peer_rate = mine["count"] / own, theirs["count"] / other
        print(
            f"| {name} | {rate / 1e6:.2f} M/s | {peer_rate / 1e6:.2f} M/s | {rate / peer_rate:.1f} "
            f"| {best * mine['count'] / theirs['count']:.1f} | {case.aim / 1e6:g} M/s {tail}",
            flush=True,
        )
        return {"ours": rate, "peer": peer_rate, "ratio": rate / peer_rate}
    print(
        f"| {name} | {own:.3f} s ({own / mine['rows'] * 1e9:.1f} ns/row) | {other:.3f} s "
        f"| {other / own:.2f} | {best:.2f} | {case.aim:g} {tail}",
        flush=True,
    )
    return {"ours": own, "peer": other, "ratio": other / own, "ratio_of_fastest": best}


def same_work(name: str, ours: dict[str, Any], peer: dict[str, Any]) -> None:
    """Stops the run where a ratio would compare different work."""
    for key, mine in ours.items():
        if abs(mine - peer[key]) > 1e-4:  # the peer sums in floats
            raise SystemExit(f"{name}: {key} is {mine} here and {peer[key]} at the peer")


def machine(peer_python: str) -> str:
    """One line to read the figures by."""
    what = "import hftbacktest, numba, platform; from importlib.metadata import version; "
    what += "print(platform.python_version(), version('hftbacktest'), version('numba'))"
    done = subprocess.run([peer_python, "-c", what], capture_output=True, text=True, check=True)
    python, peer, numba = done.stdout.split()
    return (
        f"{cpu()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; ours: Python "
        f"{platform.python_version()}; hftbacktest {peer}: Python {python}, numba {numba}\n"
    )


if __name__ == "__main__":
    main()
