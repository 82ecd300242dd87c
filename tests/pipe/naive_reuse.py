"""The rule of reuse in plain Python, fed by a strategy's own handlers; and a model to try it on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from naive_legs import draw_uniform

from hft import Strategy
from hft.config import ReuseConfig
from hft.durations import parse_ns
from hft.features import Features, OnPacket, imbalance, micro_price_minus_mid, spread, trade_flow
from hft.inference.bundle import Bundle, save_bundle
from hft.inference.card import Card, LayerEntry, Readout, Scaler, Training, entries_of

SHADOW = 9
COLUMNS = Features(
    spread(), imbalance(1), imbalance(5), micro_price_minus_mid(), trade_flow("50ms"),
    trigger=OnPacket(),
)  # fmt: skip
WARM_UP = 20
SCALER = Scaler(mean=(1.5, 0.0, 0.1, 0.0, 3.0), scale=(1.0, 0.5, 0.4, 0.6, 80.0), clip=2.0)


def linear_softmax(folder: Path, seed: int = 1, understated: float = 1.0) -> Bundle:
    """A model whose sensitivity is known: a quarter of the widest gap between two columns' sums."""
    rng = np.random.default_rng(seed)
    kernel = (rng.standard_normal((len(COLUMNS), 3)) * 1.2).astype(np.float32)
    gaps = [np.abs(kernel[:, i] - kernel[:, j]).sum() for i in range(3) for j in range(i)]
    entries, trigger = entries_of(COLUMNS)
    card = Card(
        format=2,
        name="linear",
        outputs=("down", "flat", "up"),
        horizon_ns=500_000_000,
        latency_ns=2_000_000,
        warm_up_rows=WARM_UP,
        trigger=trigger,
        features=entries,
        layers=(LayerEntry(kind="dense", units=3, activation="softmax"),),
        scaler=SCALER,
        readout=Readout(move_ticks=(-5.0, 0.1, 5.0), shrink=0.9),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=3),
        sensitivity=float(max(gaps)) / 4 / understated,
    )
    return save_bundle(folder, card, [{"kernel": kernel, "bias": np.zeros(3, np.float32)}])


def scaled(row: list[float]) -> list[float]:
    """As the model sees it."""
    columns = zip(row, SCALER.mean, SCALER.scale, strict=True)
    return [min(max((x - m) * (1 / s), -SCALER.clip), SCALER.clip) for x, m, s in columns]


def probabilities(bundle: Bundle, row: list[float]) -> np.ndarray:
    z = np.array(scaled(row)) @ np.asarray(bundle.weights[0]["kernel"], np.float64)
    e = np.exp(z - z.max())
    return e / e.sum()


class Asked:
    """A row and, once it is there, its answer."""

    def __init__(self, number: int, row: list[float], side: int, now: int) -> None:
        self.number, self.row, self.side, self.now = number, row, side, now
        self.is_shadow = False
        self.outputs: list[float] = []

    @property
    def kind(self) -> tuple[int, int]:
        """Class and side of the forecast."""
        return int(np.argmax(self.outputs[:3])), int(np.sign(self.outputs[3]))

    @property
    def margin(self) -> float:
        first, second = sorted(self.outputs[:3], reverse=True)[:2]
        return first - second


class NaiveReuse:
    """One stream's."""

    def __init__(
        self,
        config: ReuseConfig,
        sensitivity: float,
        seed: int,
        instrument: int,
        *,
        skips: bool,
        window_rows: int,
    ) -> None:
        self.config, self.sensitivity, self.skips = config, sensitivity, skips
        self.window_rows, self.last = window_rows, [[0.0]]
        self.seed, self.stream = seed, SHADOW + (instrument << 32)
        self.rows = self.off_until = self.in_a_row = 0
        self.answer: Asked | None = None
        self.under_way: list[Asked] = []
        self.judged: list[bool] = []
        self.counts: Counter[str] = Counter()

    def look(self, row: list[float], side: int, now: int) -> str:
        """`reused`, `shadows`, or why the row is computed."""
        self.last = [*self.last, scaled(row)][-self.window_rows :]
        asked = Asked(self.rows, [x for seen in self.last for x in seen], side, now)
        self.rows += 1
        verdict = self._why_not(asked)
        if not verdict:
            draw = draw_uniform(self.seed, self.stream, asked.number)
            verdict = "shadows" if draw < self.config.shadow else "reused"
        self.counts["rows"] += 1
        self.counts[verdict] += 1
        if verdict == "reused":
            self.in_a_row += 1
        elif self.rows > WARM_UP and not (self.skips and self.under_way):
            asked.is_shadow = verdict == "shadows"
            self.under_way.append(asked)
        return verdict

    def _why_not(self, asked: Asked) -> str:
        config, answer = self.config, self.answer
        if asked.now < self.off_until:
            return "off"
        if self.under_way:
            return "under_way"
        if answer is None:
            return "no_answer"
        if self.in_a_row >= config.max_reuse:
            return "too_often"
        if asked.now - answer.now > parse_ns(config.max_age):
            return "too_old"
        if asked.side != answer.side:
            return "side"
        distance = max(abs(a - b) for a, b in zip(asked.row, answer.row, strict=True))
        if not distance <= config.epsilon:
            return "far"
        return "" if answer.margin > 2 * self.sensitivity * distance else "unsure"

    def hear(self, ts_features: int, outputs: list[float], now: int) -> None:
        """A computed answer; rows that were asked before it and did not come never will."""
        while self.under_way[0].now != ts_features:
            self.under_way.pop(0)
        heard = self.under_way.pop(0)
        heard.outputs = outputs
        if heard.is_shadow:
            assert self.answer is not None
            self._judge(differs=heard.kind != self.answer.kind, now=now)
        self.answer, self.in_a_row = heard, 0

    def _judge(self, *, differs: bool, now: int) -> None:
        self.judged = [*self.judged, differs][-256:]
        self.counts["compared"] += 1
        self.counts["disagreed"] += differs
        if len(self.judged) >= 16 and sum(self.judged) > self.config.budget * len(self.judged):
            self.counts["trips"] += 1
            self.off_until, self.judged = now + parse_ns(self.config.pause), []


class Twin(Strategy):
    """Follows the rule beside the core; needs a model, and to be told the rule."""

    config: ReuseConfig
    sensitivity: float
    skips = False
    window_rows = 1

    def on_start(self) -> None:
        self.naive: dict[int, NaiveReuse] = {}
        self.verdicts: dict[int, list[tuple[int, str]]] = {}
        self.rows: dict[int, dict[int, tuple[list[float], int]]] = {}
        self.heard: dict[int, list[tuple[int, int, bool, list[float]]]] = {}

    def on_features(self, row: Any) -> None:
        number, book = row.instrument.id, self.book(row.instrument)
        if number not in self.naive:
            self.naive[number] = NaiveReuse(
                self.config,
                self.sensitivity,
                self.seed,
                number,
                skips=self.skips,
                window_rows=self.window_rows,
            )
        values = [row[name] for name in COLUMNS.names]
        side = (book.bid_lots > book.ask_lots) - (book.bid_lots < book.ask_lots)
        verdict = self.naive[number].look(values, side, self.now)
        self.verdicts.setdefault(number, []).append((self.now, verdict))
        self.rows.setdefault(number, {})[self.now] = values, side

    def on_signal(self, signal: Any) -> None:
        number = signal.instrument.id
        outputs = [signal[name] for name in ("down", "flat", "up", "alpha_ticks")]
        self.heard.setdefault(number, []).append((signal.ts, self.now, signal.reused, outputs))
        if not signal.reused:
            self.naive[number].hear(signal.ts, outputs, self.now)


def twin_of(bundle: Bundle, config: ReuseConfig, *, skips: bool = False) -> type[Twin]:
    from hft import Model

    facts = {
        "model": Model(str(bundle.path)),
        "config": config,
        "sensitivity": bundle.card.sensitivity,
        "skips": skips,
        "window_rows": bundle.card.window_rows or 1,
    }
    return type("TwinOfReuse", (Twin,), facts)


def recipe_of(config: ReuseConfig, **engine: Any) -> dict[str, Any]:
    return {
        "seed": 5,
        "engine": {"bracket": False, "shortfall": False, **engine},
        "models": {"model": {"reuse": msgspec.to_builtins(config)}},
    }
