"""What importing costs: `make bench-import`. Prints a table, writes build/bench/imports.json.

Every importer reads its real file, or where there is none (or no folder of data) a made-up one of
a million rows. Beside it stands the least that anyone pays for the same file: unpacking it and, of
CSV and Parquet, polars reading all columns on one thread. `times bare` is the ratio.

    decode   the importer alone: rows of EVENT, in batches
    import   decoded, checked, hashed, written as Parquet and synced
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests/data"))

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from conformance import CASES, Case, real  # noqa: E402
from own import machine  # noqa: E402

from hft.data import Imported, Source, Store, import_source  # noqa: E402

ROWS = 1_000_000
RUNS = 3


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    args.add_argument("cases", nargs="*", help="names of cases; default: all")
    args.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    args.add_argument("--out", type=Path, default=ROOT / "build/bench/imports.json")
    chosen = args.parse_args()
    data = Path(os.environ.get("HFT_DATA", chosen.data))
    print(f"{'times bare':>79}")
    print(f"{'':<18}{'rows':>10}{'decode/s':>12}{'import/s':>12}", end="")
    print(f"{'bare s':>9}{'decode':>9}{'import':>9}")
    figures = {}
    for case in CASES:
        if not chosen.cases or case.name in chosen.cases:
            figures[case.name] = measured(case, data)
            show(case.name, figures[case.name])
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps({"machine": machine(), "imports": figures}, indent=2))


def measured(case: Case, data: Path) -> dict[str, Any]:
    paths = [data / name for name in case.real]
    with tempfile.TemporaryDirectory() as folder:
        if paths and all(path.is_file() for path in paths):
            columns, case = None, real(case)
        else:
            paths, _, _, columns = case.write(Path(folder), ROWS)

        def sources() -> list[Source]:
            return case.sources(paths, columns)

        # What is imported lazily is there from here on, and a clock that is behind is known.
        store = Path(folder) / "store"
        shifts_ns = [done.clock["shift_ns"] for done in imported(sources(), store, ["auto"])]
        rows = drained(sources())
        decode_s = least(lambda: drained(sources()))
        import_s = least(lambda: imported(sources(), store, shifts_ns))
        bare_s = least(lambda: [bare(path, case.bare) for path in paths])
    return {
        "files": [path.name for path in paths],
        "real": bool(columns is None and case.real),
        "rows": rows,
        "decode_rows_a_second": rows / decode_s,
        "import_rows_a_second": rows / import_s,
        "bare": case.bare,
        "bare_s": bare_s,
        "decode_over_bare": decode_s / bare_s,
        "import_over_bare": import_s / bare_s,
    }


def least(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def drained(sources: list[Source]) -> int:
    return sum(len(batch.events) for source in sources for batch in source.batches())


def imported(sources: list[Source], store: Path, clocks: list[Any]) -> list[Imported]:
    offsets = clocks * (len(sources) // len(clocks))
    done = [
        import_source(source, Store(store), clock_offset=offset)
        for source, offset in zip(sources, offsets, strict=True)
    ]
    shutil.rmtree(store)
    return done


def bare(path: Path, form: str) -> int:
    """The least that is paid for a file."""
    import polars as pl

    if form == "parquet":
        return len(pl.read_parquet(path))
    members = unpacked(path)
    if form == "bytes":
        return sum(map(len, members))
    return sum(len(pl.read_csv(m, infer_schema_length=1000, ignore_errors=True)) for m in members)


def unpacked(path: Path) -> list[bytes]:
    raw = path.read_bytes()
    if raw.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            return [archive.read(name) for name in archive.namelist() if not name.endswith("/")]
    if raw.startswith(b"\x1f\x8b"):
        return [gzip.decompress(raw)]
    if raw.startswith(b"\xfd7zXZ"):
        return [lzma.decompress(raw)]
    if raw.startswith(b"&^%$#@!"):  # WonderTrader's header
        raw = raw[20:]
    if raw.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return [pa.CompressedInputStream(pa.BufferReader(raw), "zstd").read()]
    return [raw]


def show(name: str, f: dict[str, Any]) -> None:
    print(
        f"{name:<18}{f['rows']:>10,}{f['decode_rows_a_second']:>12,.0f}"
        f"{f['import_rows_a_second']:>12,.0f}{f['bare_s']:>9.3f}"
        f"{f['decode_over_bare']:>9.1f}{f['import_over_bare']:>9.1f}"
        f"  {f['bare']}{'' if f['real'] else ', made up'}",
        flush=True,
    )


if __name__ == "__main__":
    main()
