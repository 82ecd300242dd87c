"""A run's recipe: frozen, typed, unknown keys refused, TOML on disk.

strategy = "strategies/lstm_mm.py"
[data]     where rows come from       [params]  the strategy's own
[latency]  the four legs              [risk]    the gate before every order
[venue]    queue, fills, fees         [engine]  how the run goes
[models]   what computes each model   [[swaps]] bundles that take over during the run
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hft.data.synth import SynthConfig

Duration = str | int
"""`"250us"`, or a whole number of ns."""
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Scale = Annotated[float, Meta(ge=0, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Fee = Annotated[float, Meta(gt=-1, lt=1)]
LEGS = (
    "feed",
    "entry",
    "response",
    "entry_cancel",
    "entry_replace",
    "compute",
    "risk",
    "inference",
)
"""Of `[latency]`."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every table of a recipe."""


class Series(Section, frozen=True):
    """A recorded latency: the row at or before the sending holds, never a line between rows."""

    file: str
    """CSV or Parquet with a column of times and one of durations, both whole ns."""
    ts: str = "ts"
    column: str = "ns"
    scale: Scale = 1.0


Leg = Duration | Series
"""A duration, `"profile"`, or a recorded series."""
PROFILE = "profile"


class DataConfig(Section, frozen=True):
    """Where the rows come from."""

    path: str = "synth"
    """`synth`, a store's folder, or one file (`.npy`, `.npz`, `.parquet`, `.arrow`)."""
    symbols: tuple[str, ...] = ()
    """`SYMBOL.VENUE` or `SYMBOL`; empty: all there are."""
    start: str | int | None = None
    """ISO date or time (UTC) or ns; included."""
    end: str | int | None = None
    """Excluded."""
    as_levels: bool = False
    """Tell an order-by-order feed as one of levels, as most people would have bought it."""
    chunk_rows: Annotated[int, Meta(ge=1)] = 1 << 18
    tick: Annotated[float, Meta(gt=0)] | None = None
    """For `.npy` and `.npz` files, which do not know theirs."""
    lot: Annotated[float, Meta(gt=0)] | None = None
    synth: SynthConfig = SynthConfig(duration_s=1800.0, price0_ticks=20_000, tick=1.0)


class ServerConfig(Section, frozen=True):
    """The inference server: what it does with rows that come while it works."""

    mode: Literal["conflate", "queue", "skip", "deadline"] = "conflate"
    """Keep the newest row a model and instrument; keep `bound` rows; drop them; or `conflate` and
    refuse rows that cannot be answered within `deadline` of their market event."""
    bound: Annotated[int, Meta(ge=1, le=1 << 20)] = 1024
    """Rows that wait in mode `queue`; beyond it the oldest is dropped."""
    deadline: Duration = "8ms"
    max_batch: Annotated[int, Meta(ge=1, le=4096)] = 1
    """Waiting rows of different streams answered together."""
    hold: Duration = 0
    """While it is free: how long a row waits until `max_batch` are there."""
    per_item: Duration = 0
    """What every further row of a batch adds to the service."""
    per_row: Duration = 0
    """What every row that was conflated away adds: a model's state moves over all of them."""


class LatencyConfig(Section, frozen=True):
    """The four legs. Defaults: a desk in the venue's region, not in its rack."""

    profile: str = ""
    """A latency profile's file, or `colocated`, `same-region`, `cross-region`."""
    model: Literal["bootstrap", "empirical", "lognormal", "recorded"] = "bootstrap"
    """How a leg that is `"profile"` is drawn from it; see docs/latency.md."""
    block: Duration = 0
    """Mean block of the bootstrap; 0: chosen from the profile."""
    conditioned: bool = True
    """Blocks come from the profile's own stretches of the same message rate."""
    feed: Leg | Literal["data"] = "data"
    """`data`: ts_recv - ts_event of each row; anything else replaces it."""
    entry: Leg | None = None
    """Unset: the profile's where there is one and it has this stage, else 1ms."""
    response: Leg | None = None
    """Unset: likewise, 1ms."""
    entry_cancel: Leg | None = None
    """Of cancels; unset: the profile's own where it has them, else as `entry`."""
    entry_replace: Leg | None = None
    """Of replaces; unset: likewise."""
    ordering: Literal["fifo", "independent"] = "fifo"
    """Whether a message can overtake the one sent before it: never on one connection (FIX, OUCH),
    yes where each travels alone (REST)."""
    compute: Leg | None = None
    """A handler call; the strategy is one server, later inputs wait. Unset: likewise, 20us."""
    risk: Leg = 0
    """The gate, for each message of a handler."""
    inference: Leg | None = None
    """A model's service time on a server of its own. Unset: likewise, 50us."""
    server: ServerConfig = ServerConfig()
    scale: Scale = 1.0
    """Multiplies every leg, the feed's included."""


class ImpactConfig(Section, frozen=True):
    """The price overlay of our own taking, charged in cash; see docs/fills.md."""

    weights: tuple[Annotated[float, Meta(ge=0)], ...] = ()
    """Push of one lot, one an exponential; none: no overlay."""
    half_lives: tuple[Duration, ...] = ()
    permanent: Annotated[float, Meta(ge=0)] = 0.0
    """Push of one lot that stays."""
    unit: Literal["ticks_per_lot", "spread_per_depth"] = "ticks_per_lot"
    """`spread_per_depth`: the weights are shares of the mean spread for a trade of the mean size at
    the touch, both measured on the run's first rows."""


class SlippageConfig(Section, frozen=True):
    """What a taker pays beyond the touch where data tell no depth: a weak model."""

    model: Literal["none", "spread", "volatility", "square_root"] = "none"
    coefficient: Annotated[float, Meta(ge=0)] = 1.0
    """Of the spread; of sigma * sqrt(horizon); of sigma * sqrt(lots / volume)."""
    horizon: Duration = "1s"


class VenueConfig(Section, frozen=True):
    """How the venue fills and what it charges."""

    queue: Literal["risk_averse", "power1", "power2", "power3", "log1", "log2", "uniform"] = (
        "power3"
    )
    """Our place where the feed tells levels; where it tells orders, it is known."""
    queue_n: Annotated[float, Meta(gt=0)] = 2.0
    queue_draws: bool = False
    """A cancel lies wholly before or behind us by a keyed draw, instead of in its mean share."""
    matching: Literal["fifo", "pro_rata"] = "fifo"
    """How executions at a level are shared."""
    replace_keeps: Literal["smaller", "same_price", "nothing"] = "smaller"
    """Replaced orders that keep their place: not larger at the same price, of any size, none."""
    partial_fills: bool = True
    share_prints: bool = True
    through: Literal["volume", "full"] = "volume"
    """How much a print through our price fills."""
    cross: Literal["fill", "wait_trade"] = "fill"
    """What the other side's size arriving at our price does."""
    refill_half_life: Duration = "1s"
    """Of displayed size that we took; 0: it never heals by itself."""
    refill_probability: Share = 1.0
    """That what we take heals; else it stays away until the tape moves."""
    fade: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of displayed depth that is gone when a taker arrives; feeds of levels only."""
    fade_rule: Literal["flat", "compound"] = "flat"
    """`compound`: level i keeps (1 - fade)^(i + 1)."""
    impact: ImpactConfig = ImpactConfig()
    participation_window: Duration = "10s"
    participation_flag: Share = 0.1
    """Our share of the traded volume above which fills are reported as extrapolated."""
    participation_cap: Share = 0.0
    """Share that our takers may not exceed; 0: no cap."""
    depth: Literal["displayed", "touch"] = "displayed"
    """`touch`: takers fill whole at the best price and pay `slippage`; for data without depth."""
    slippage: SlippageConfig = SlippageConfig()
    native_replace: bool = True
    maker_fee: Fee = 0.0
    """Of notional; negative: a rebate."""
    taker_fee: Fee = 0.0


class RiskConfig(Section, frozen=True):
    """The first gate; 0 means no limit."""

    max_order_lots: Count = 0
    max_position_lots: Count = 0
    max_open_orders: Count = 0
    collar_bps: Count = 0
    """Furthest a price may lie from our mid."""
    max_messages: Count = 0
    """New orders and replaces in any `window`."""
    window: Duration = "1s"


class EngineSection(Section, frozen=True):
    """How the run goes."""

    moves: Literal["on_answer", "on_call", "overlap"] = "on_answer"
    """What a target verb does while an order is on its way out; see docs/orders.md."""
    sample: Duration = "1s"
    """Grid of equity samples."""
    bracket: bool = True
    """Also run under the risk-averse queue, for the report."""
    placebo: bool = False
    """Publish what the model said of other rows."""
    profile: bool = False
    """Time each stage."""
    sees_own: bool = True
    """The strategy's books lack what we took of the tape, as a live feed would show them; features,
    triggers and marks stay on the tape. Replay only."""
    overnight: Literal["carry", "flatten"] = "carry"
    """`flatten`: each UTC date is a run of its own, flat at its end."""
    flatten_before: Duration = "5s"
    """How long before the end of trading a day is wound down."""
    shortfall: bool = True
    """After the run, look up the mids that its implementation shortfall needs: one more pass over
    the rows, of the run itself and not of its variants."""


class ReuseConfig(Section, frozen=True):
    """When an answer is given again instead of computed; only for models without memory."""

    epsilon: Annotated[float, Meta(ge=0)] = 0.0
    """Largest change of any scaled input since the row that was computed; 0: nothing is reused."""
    max_reuse: Annotated[int, Meta(ge=0, le=1 << 20)] = 16
    """Answers in a row that may be reused."""
    max_age: Duration = "100ms"
    """Of the computed answer."""
    shadow: Share = 0.05
    """Share of reused answers that are computed all the same, and compared."""
    budget: Share = 0.02
    """Share of shadows whose class differed above which the cache is off for `pause`."""
    pause: Duration = "10s"


class ModelConfig(Section, frozen=True):
    """What computes a model of the strategy; the table's name is the model's."""

    bundle: str = ""
    """A folder; empty: the one the strategy names."""
    tier: Literal["FULL", "LIGHT", "MICRO"] = "FULL"
    backend: Literal["native", "onnx", "litert", "tensorflow", "serving"] = "native"
    precision: Literal["", "fp32", "fp16", "int8", "dynamic"] = ""
    """Of the weights; empty: as the bundle was built, by a part that passed its gates."""
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    url: str = ""
    """Of `serving`: `http://host:8501/v1/models/NAME`."""
    reuse: ReuseConfig = ReuseConfig()


class SwapConfig(Section, frozen=True):
    """A bundle that takes over at the first packet at or after `at` at which it is warm."""

    at: str | int
    """ISO time (UTC) or ns."""
    bundle: str
    model: str = "model"


class Recipe(Section, frozen=True):
    """Everything a run depends on besides the strategy's code, the data and the bundle."""

    strategy: str = ""
    name: Annotated[str, Meta(pattern=r"^(?!\.)[^/]*$")] = ""
    """Part of the run folder's name; by default the strategy file's."""
    seed: Count = 1
    state: str = ""
    """A `state.json` that an earlier run saved, for `on_load`."""
    data: DataConfig = DataConfig()
    latency: LatencyConfig = LatencyConfig()
    venue: VenueConfig = VenueConfig()
    venues: dict[str, VenueConfig] = {}
    """Instead of `venue`, by venue name."""
    risk: RiskConfig = RiskConfig()
    engine: EngineSection = EngineSection()
    models: dict[str, ModelConfig] = {}
    """By model; `model` is that of a strategy with one. Absent: defaults."""
    swaps: tuple[SwapConfig, ...] = ()
    """Replay; live, `hft swap`."""
    params: dict[str, Any] = {}
