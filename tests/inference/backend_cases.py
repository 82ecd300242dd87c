"""Networks, rows and the oracle of the backends' conformance suite, and how its parts are made.

Each network is told as tests/inference/numpy_lstm.py has it and computed there in double: that is
what every backend is held against. Parts come from `hft build`'s own exports, all in one process
apart, as TensorFlow takes seconds to load.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy_lstm import random_conv, random_dense, random_gru, random_lstm, run
from stacks import rows_of, stack_from

from hft.data.synth import SynthConfig, synthesize
from hft.features import (
    Features,
    OnPacket,
    compute_features,
    depth_lots,
    imbalance,
    mid_return,
    spread,
)
from hft.inference.build.exports import Part
from hft.inference.build.work import export_native, write_network
from hft.inference.bundle import Bundle, load_bundle, part_sha256, save_bundle
from hft.inference.card import Card, Readout, Scaler, Training, entries_of
from hft.inference.compress.quantise import activation_ranges
from hft.inference.compress.stack import Stack

Rows = npt.NDArray[np.float64]

FEATURES = Features(
    spread(),
    imbalance(1),
    imbalance(3),
    depth_lots(1, 1).log(),
    depth_lots(-1, 2).log(),
    mid_return("1s"),
    trigger=OnPacket(),
)
WIDTH = len(FEATURES)
CLASSES = ("down", "flat", "up")
MOVES, SHRINK = (-9.5, 0.25, 9.25), 0.8
CLIP = 4.0
WINDOW_ROWS = 12
ROWS = 60


def _networks() -> dict[str, list[dict[str, Any]]]:
    rng = np.random.default_rng(11)
    head = lambda units: random_dense(rng, units, 3, "softmax")  # noqa: E731
    return {
        "lstm": [random_lstm(rng, WIDTH, 32), random_lstm(rng, 32, 16), head(16)],
        "gru": [random_gru(rng, WIDTH, 32), random_gru(rng, 32, 16), head(16)],
        "conv": [
            random_conv(rng, WIDTH, 32, 4, "relu"),
            random_conv(rng, 32, 16, 3, "tanh"),
            random_dense(rng, 16, 16, "relu"),
            head(16),
        ],
        "dense": [
            random_dense(rng, WIDTH, 32, "tanh"),
            random_dense(rng, 32, 24, "relu"),
            head(24),
        ],
        "window": [random_conv(rng, WIDTH, 24, 3, "relu"), random_lstm(rng, 24, 24), head(24)],
    }


NETWORKS = _networks()

TOLERANCE = {
    ("native", "fp32"): 1e-5,
    ("native", "int8"): 2e-2,
    ("litert", "fp32"): 1e-5,
    ("litert", "dynamic"): 1e-2,
    ("litert", "int8"): 6e-2,
    ("onnx", "fp32"): 1e-5,
    ("onnx", "fp16"): 1e-3,
    ("onnx", "int8"): 2e-2,
    ("tensorflow", "fp32"): 1e-5,
    ("serving", "fp32"): 1e-5,
}
"""Of probabilities, against double. What 8 bits cost is judged by the build's gates, on a trained
model; here weights are random and gates half open, which is worse."""
AGAIN = 1e-6
"""Between a batch and its rows one by one, where a library is free in its order of sums; 0 for the
native backend."""
NEEDS = {
    "native": (),
    "litert": ("ai_edge_litert", "tensorflow"),
    "onnx": ("onnx", "onnxruntime"),
    "tensorflow": ("tensorflow", "keras"),
    "serving": ("tensorflow", "keras"),
}
"""What running a backend and making its parts takes."""


@dataclass(frozen=True, slots=True)
class Case:
    """One backend on one network."""

    network: str
    backend: str
    precision: str

    def __str__(self) -> str:
        return f"{self.network}-{self.backend}-{self.precision}"

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.backend, self.precision]

    @property
    def window_rows(self) -> int:
        return WINDOW_ROWS if self.network == "window" else 0

    @property
    def missing(self) -> str:
        """What is not installed."""
        return missing(self.backend)


def missing(backend: str) -> str:
    return ", ".join(name for name in NEEDS[backend] if find_spec(name) is None)


SERVED = ("gru", "window", "dense")
"""Networks on the server: with states, with windows, with neither."""
_SOME = {("litert", "int8"): ("dense", "lstm"), ("serving", "fp32"): SERVED}
"""Networks of these; of all others every one."""
CASES = [
    Case(network, backend, precision)
    for network in NETWORKS
    for backend, precision in TOLERANCE
    if network in _SOME.get((backend, precision), NETWORKS)
]
FEW = [case for case in CASES if case.network in ("gru", "window")]
"""For what does not depend on the layers."""
BROKEN = "nan"
"""Parts of `gru` with NaN among its weights: a folder, no bundle."""
BROKEN_PARTS = tuple(Part(backend, "step") for backend in ("onnx", "litert", "tensorflow"))


def scaler() -> Scaler:
    rows = market_rows()
    return Scaler(
        mean=tuple(rows.mean(axis=0).tolist()),
        scale=tuple((rows.std(axis=0) + 1e-3).tolist()),
        clip=CLIP,
    )


@cache
def market_rows() -> Rows:
    """Of a minute of the synthetic market."""
    config = SynthConfig(duration_s=60.0, price0_ticks=20_000, tick=1.0)
    events = next(iter(synthesize(config)[0].values()))
    return compute_features(events, FEATURES)[1]


def random_rows(n: int = ROWS, seed: int = 3) -> Rows:
    """As large as the market's, some of them beyond the clip."""
    s = scaler()
    z = np.random.default_rng(seed).standard_normal((n, WIDTH)) * 2.0
    return np.ascontiguousarray(np.array(s.mean) + np.array(s.scale) * z)


def scaled(rows: Rows) -> Rows:
    s = scaler()
    return np.clip((rows - np.array(s.mean)) / np.array(s.scale), -CLIP, CLIP)


def expected(case: Case, rows: Rows) -> Rows:
    """Probabilities after each row, (n, 3); of a window those that are full."""
    layers, x, width = NETWORKS[case.network], scaled(rows), case.window_rows
    if not width:
        return run(layers, x)
    return np.array([run(layers, x[i - width : i])[-1] for i in range(width, len(x) + 1)])


def stack_of(network: str) -> Stack:
    stack = stack_from(NETWORKS[network], CLIP)
    return Stack(stack.layers, stack.weights, scaler(), WINDOW_ROWS if network == "window" else 0)


def parts_of(network: str) -> list[Part]:
    windowed = network == "window"
    wanted = [case for case in CASES if case.network == network and not case.missing]
    found = []
    for case in wanted:
        if case.backend in ("onnx", "litert"):
            found.append(Part(case.backend, "step", case.precision))
        if case.backend == "tensorflow":
            found.append(Part("tensorflow", "window" if windowed else "step"))
    if windowed and any(case.backend == "onnx" for case in wanted):
        found.insert(0, Part("onnx", "window"))
    return found


def make_bundles(folder: Path) -> None:
    """One of each network with every part that can be made here, and the broken parts."""
    orders = broken_orders(folder)
    np.save(folder / "rows.npy", scaled(random_rows(400, 7)).astype(np.float32))
    for name in NETWORKS:
        stack, home = stack_of(name), folder / f"{name}.bundle"
        home.mkdir()
        write_network(folder / f"{name}.npz", stack.layers, stack.weights)
        orders += [order_of(folder, home, name, stack, part) for part in parts_of(name)]
    if orders:
        export_apart(folder, orders)
    for name in NETWORKS:
        stack, home = stack_of(name), folder / f"{name}.bundle"
        entries = tuple(part.entry(part_sha256(home / part.file)) for part in parts_of(name))
        save_bundle(home, card_of(name, stack, entries), stack.weights)


def loaded_bundles(folder: Path) -> dict[str, Bundle]:
    """What `make_bundles` made, by network."""
    return {name: load_bundle(folder / f"{name}.bundle") for name in NETWORKS}


def broken_orders(folder: Path) -> list[dict[str, Any]]:
    """For parts whose weights are not all numbers."""
    stack, home = stack_of("gru"), folder / BROKEN
    home.mkdir()
    weights = [dict(of) for of in stack.weights]
    weights[1]["kernel"] = weights[1]["kernel"] * np.float32(np.nan)
    write_network(folder / f"{BROKEN}.npz", stack.layers, weights)
    return [
        order_of(folder, home, BROKEN, stack, part)
        for part in BROKEN_PARTS
        if not missing(part.backend)
    ]


def card_of(name: str, stack: Stack, parts: Sequence[Any] = (), **changes: Any) -> Card:
    entries, trigger = entries_of(FEATURES)
    facts: dict[str, Any] = {
        "format": 2,
        "name": name,
        "outputs": CLASSES,
        "horizon_ns": 500_000_000,
        "latency_ns": 1_000_000,
        "warm_up_rows": max(stack.window_rows - 1, 0),
        "window_rows": stack.window_rows,
        "trigger": trigger,
        "features": entries,
        "layers": stack.layers,
        "scaler": scaler(),
        "readout": Readout(move_ticks=MOVES, shrink=SHRINK),
        "training": Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=11),
        "parts": tuple(parts),
    }
    return Card(**(facts | changes))


def order_of(folder: Path, home: Path, name: str, stack: Stack, part: Part) -> dict[str, Any]:
    return {
        "network": str(folder / f"{name}.npz"),
        "file": str(home / part.file),
        "backend": part.backend,
        "form": part.form,
        "precision": part.precision,
        "window_rows": stack.window_rows,
        "reaches": reaches(stack),
        "wide": [],
        "rows": str(folder / "rows.npy"),
    }


def reaches(stack: Stack) -> list[float]:
    """Of each layer, the largest |input|."""
    rows = random_rows(400, 7)
    ranges = activation_ranges(stack, rows_of(rows), slice(20, len(rows)))
    return [max(-r.low, r.high) for r in ranges[:-1]]


def export_apart(folder: Path, orders: list[dict[str, Any]]) -> None:
    """Has `export_native` carry out orders in another process."""
    file = folder / "orders.json"
    file.write_text(json.dumps(orders))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(file)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def rest_server(
    *models: str,
    labels: Sequence[str] = (),
    port: int = 0,
    load_s: float = 0.0,
    compute_s: float = 0.0,
) -> Iterator[str]:
    """A server of models as rest_server.py has them; gives http://HOST:PORT/v1/models/."""
    script = Path(__file__).with_name("rest_server.py")
    command = [sys.executable, "-W", "ignore", str(script), *models]
    command += ["--load-s", str(load_s), "--compute-s", str(compute_s), "--port", str(port)]
    command += [word for label in labels for word in ("--label", label)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1/models/"
        finally:
            process.terminate()


if __name__ == "__main__":
    for order in json.loads(Path(sys.argv[1]).read_text()):
        export_native(**order)
