"""The C++ core of hft."""

from collections.abc import Iterable, Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class BookStream:
    """The book of one instrument's rows, chunk by chunk."""

    def __init__(self) -> None: ...

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """EVENT rows viewed as (n, 8) int64 -> (packets, 8) int64."""

    def levels(self, side: int, n: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """(k, 3): price, lots, orders."""

    def queue(self, side: int, price: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """(k, 2): order id, lots."""

    @property
    def live_orders(self) -> int: ...

    @property
    def faults(self) -> dict: ...

    @property
    def trading(self) -> int: ...

    @property
    def state(self) -> str: ...

class LevelStream:
    """Order-by-order rows told as levels, chunk by chunk."""

    def __init__(self) -> None: ...

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """(n, 8) int64 -> (k, 8) int64."""

    def rest(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """Rows of a packet that the feed left open."""

class OwnRow:
    """What an own feature may read, during its call."""

    @property
    def ts(self) -> int: ...

    @property
    def signed_lots(self) -> float:
        """Buyers' lots less sellers', over the feature's window."""

    @property
    def traded_lots(self) -> float: ...

    @property
    def bid(self) -> int: ...

    @property
    def ask(self) -> int: ...

    @property
    def mid(self) -> float: ...

    @property
    def micro_price(self) -> float: ...

    @property
    def spread(self) -> int: ...

    def depth_lots(self, levels: int) -> int:
        """Lots of both sides over the first `levels`."""

class FeatureSpec:
    """One feature as the core computes it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def levels(self) -> int: ...

    @property
    def window_ns(self) -> int: ...

def feature_spec(kind: str, name: str, levels: int = 1, window_ns: int = 0, side: int = 0, log: bool = False, update: object | None = None, state: object | None = None) -> FeatureSpec: ...

class Trigger:
    """When a features row is made."""

    @property
    def sizes(self) -> bool: ...

    @property
    def interval_ns(self) -> int: ...

def trigger(kind: str, sizes: bool = False, interval_ns: int = 0) -> Trigger: ...

class FeatureStream:
    """Features of one instrument's rows, chunk by chunk."""

    def __init__(self, specs: Sequence[FeatureSpec], trigger: Trigger) -> None: ...

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, None))]]:
        """
        EVENT rows viewed as (n, 8) int64 -> (ts (k,) int64, rows (k, features) float64).
        """

    @property
    def warm_up_ns(self) -> int: ...

class LstmLayer:
    @property
    def inputs(self) -> int: ...

    @property
    def units(self) -> int: ...

class DenseLayer:
    @property
    def inputs(self) -> int: ...

    @property
    def units(self) -> int: ...

class GruLayer:
    @property
    def inputs(self) -> int: ...

    @property
    def units(self) -> int: ...

class ConvLayer:
    @property
    def inputs(self) -> int: ...

    @property
    def units(self) -> int: ...

    @property
    def width(self) -> int: ...

def lstm_layer(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], precision: str = 'float32') -> LstmLayer:
    """
    Weights as Keras holds them: (inputs, 4 u), (u, 4 u), (4 u), gates i, f, c, o.
    """

def gru_layer(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], precision: str = 'float32') -> GruLayer:
    """
    Keras' GRU, reset_after=True: (inputs, 3 u), (u, 3 u), (2, 3 u), gates z, r, h.
    """

def conv_layer(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], activation: str = 'linear', precision: str = 'float32') -> ConvLayer:
    """
    Keras' Conv1D, padding='causal': (width, inputs, u), (u); remembers width - 1 rows.
    """

def dense_layer(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], activation: str = 'linear', precision: str = 'float32') -> DenseLayer: ...

class Network:
    """An immutable network; each stream has its own memory."""

    @property
    def inputs(self) -> int: ...

    @property
    def outputs(self) -> int: ...

    @property
    def parameters(self) -> int: ...

    @property
    def weight_bytes(self) -> int: ...

    @property
    def why_unlocked(self) -> str:
        """
        Why its weights may be paged out; empty when they are locked in memory.
        """

    def touch(self) -> None:
        """
        Reads every weight, so that they stay in cache; all of networks put `together`.
        """

    @property
    def isa(self) -> str:
        """
        Instruction set it runs on; results are the same bits on avx512 and avx2.
        """

def build_network(mean: Sequence[float], scale: Sequence[float], clip: float, layers: Sequence[LstmLayer | GruLayer | ConvLayer | DenseLayer], move_ticks: Sequence[float] = [], shrink: float = 1.0, isa: str = '') -> Network: ...

def together(networks: Sequence[Network]) -> list[Network]:
    """
    The same networks, their weights in one locked block: `touch` of any reads all of it.
    """

class NetworkStream:
    """A network running over one stream of rows."""

    def __init__(self, network: Network) -> None: ...

    def step(self, row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        (inputs,) float64 into (outputs,) float32, both contiguous; nothing is allocated.
        """

    def batch(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """
        (n, inputs) float64 -> (n, outputs) float32; memory carries on to the next call.
        """

    def steps(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], armed: bool = False) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]: ...

    def arm(self) -> None: ...

    def reset(self) -> None: ...

class NetworkWindow:
    """A network over exactly the last `rows` rows, from nothing each time."""

    def __init__(self, network: Network, rows: int) -> None: ...

    @property
    def rows(self) -> int: ...

    def step(self, row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        (inputs,) float64 into (outputs,) float32, both contiguous; nothing is allocated.
        """

    def steps(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """
        (n, inputs) float64 -> (n, outputs) float32; the window carries on to the next call.
        """

    def settle(self) -> None: ...

    def reset(self) -> None: ...

def step_streams(streams: Sequence[NetworkStream], rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    One row for each of n different streams of one network: rows (n, inputs) float64 into
    out (n, outputs) float32. They share each pass over the weights; the same bits as a step
    of each.
    """

def time_steps(network: Network, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], mode: str = 'step', evict_bytes: int = 0, gap_ns: int = 0, window_rows: int = 100) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], int]:
    """
    Service time of a step on each row [ns], and what the clock itself adds to each [ns].
    Of a new stream, in one of these modes: 'step'; 'armed': armed before; 'touched': armed,
    then weights and memory read again; 'window': of a settled window of `window_rows`.
    All of that is not timed, nor is walking a buffer of `evict_bytes`, which comes before
    the step (of 'touched': before the touch) and leaves caches cold. Steps begin `gap_ns`
    apart or later.
    """

def best_isa() -> str: ...

class TrailingStream:
    """Scales of one instrument's rows (trailing.hpp)."""

    def __init__(self, period_ns: int, memory_ns: int, drift: float, columns: int) -> None: ...

    def feed(self, ts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Rows in order, (n,) and (n, k); the number of each one's estimate, -1: none yet.
        """

    @property
    def start_ts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """From when each estimate holds, (p,) [ns]."""

    @property
    def rows(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """That each was made of, (p,)."""

    @property
    def drifted(self) -> list[bool]:
        """The block before looked unlike the estimate before, (p,)."""

    @property
    def mean(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...

    @property
    def scale(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]: ...

class Trails:
    """How a model's rows are scaled by what trails."""

    def __init__(self, *, period_ns: int, memory_ns: int, drift: float, mean: Sequence[float], scale: Sequence[float]) -> None:
        """`mean` and `scale`: of the network's own scaler."""

def in_own_terms(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], number: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], mean: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], own_mean: Sequence[float], own_scale: Sequence[float]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    Rows (n, k) of estimates (n,), -1: none yet, as a network with that scaler is given them.
    """

def varying_scales(mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """The scale of each column, 1 where it does not vary."""

class SimInstrument:
    """One simulated instrument; defaults are a perp's."""

    def __init__(self) -> None: ...

    @property
    def id(self) -> int: ...

    @id.setter
    def id(self, arg: int, /) -> None: ...

    @property
    def price0_ticks(self) -> int: ...

    @price0_ticks.setter
    def price0_ticks(self, arg: int, /) -> None: ...

    @property
    def messages_per_s(self) -> float: ...

    @messages_per_s.setter
    def messages_per_s(self, arg: float, /) -> None: ...

    @property
    def alpha_half_life_s(self) -> float: ...

    @alpha_half_life_s.setter
    def alpha_half_life_s(self, arg: float, /) -> None: ...

    @property
    def alpha_strength(self) -> float: ...

    @alpha_strength.setter
    def alpha_strength(self, arg: float, /) -> None: ...

    @property
    def common_share(self) -> float: ...

    @common_share.setter
    def common_share(self, arg: float, /) -> None: ...

    @property
    def take_share(self) -> float: ...

    @take_share.setter
    def take_share(self, arg: float, /) -> None: ...

    @property
    def depth_orders(self) -> float: ...

    @depth_orders.setter
    def depth_orders(self, arg: float, /) -> None: ...

    @property
    def min_lots(self) -> int: ...

    @min_lots.setter
    def min_lots(self, arg: int, /) -> None: ...

    @property
    def feed_latency_ns(self) -> int: ...

    @feed_latency_ns.setter
    def feed_latency_ns(self, arg: int, /) -> None: ...

class SimMarketConfig:
    """Seed, start and instruments of a market."""

    def __init__(self) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def start_ts(self) -> int: ...

    @start_ts.setter
    def start_ts(self, arg: int, /) -> None: ...

    @property
    def instruments(self) -> list[SimInstrument]: ...

    @instruments.setter
    def instruments(self, arg: Sequence[SimInstrument], /) -> None: ...

    @property
    def funding(self) -> bool: ...

    @funding.setter
    def funding(self, arg: bool, /) -> None: ...

    @property
    def order_by_order(self) -> bool:
        """Rows are ADD, MODIFY, CANCEL and EXECUTE instead of LEVEL and TRADE."""

    @order_by_order.setter
    def order_by_order(self, arg: bool, /) -> None: ...

    @property
    def calm_s(self) -> float:
        """Mean length of a calm."""

    @calm_s.setter
    def calm_s(self, arg: float, /) -> None: ...

    @property
    def storm_s(self) -> float:
        """Mean length of a storm."""

    @storm_s.setter
    def storm_s(self, arg: float, /) -> None: ...

class SimMarket:
    """A seeded market, order by order."""

    def __init__(self, config: SimMarketConfig) -> None: ...

    @property
    def next_ts(self) -> int:
        """Time of the crowd's next action."""

    def fill(self, buffer: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], until_ts: int) -> int:
        """
        Write the next rows up to and including `until_ts` into a writable buffer of EVENT bytes; returns how many. Fewer than fit: there are no more.
        """

    def fill_reports(self, buffer: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> int:
        """
        Write answers not yet fetched into a buffer of SIM_REPORT bytes; returns how many.
        """

    def submit(self, instrument: int, our_id: int, side: int, price: int, lots: int, tif: int, now: int) -> None:
        """
        An order of ours arrives; rows and answers wait for `fill` and `fill_reports`.
        """

    def cancel(self, instrument: int, our_id: int, now: int) -> None: ...

    def replace(self, instrument: int, our_id: int, price: int, lots: int, now: int) -> None:
        """`lots` is the new total, filled lots included."""

    def ahead(self, our_id: int) -> float:
        """
        Others' lots ahead of our order in its true queue; NaN: it does not rest.
        """

    def alpha(self, instrument: int) -> float:
        """The latent alpha, in standard deviations: truth that no feed shows."""

    def storm(self, instrument: int) -> bool:
        """True while a storm lasts."""

class Instrument:
    """Facts about one instrument of a run."""

    @property
    def id(self) -> int: ...

    @property
    def symbol(self) -> str: ...

    @property
    def venue(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def tick(self) -> float: ...

    @property
    def lot(self) -> float: ...

    @property
    def multiplier(self) -> float: ...

    @property
    def inverse(self) -> bool: ...

    @property
    def maker_fee(self) -> float: ...

    @property
    def taker_fee(self) -> float: ...

    def price(self, ticks: float) -> float:
        """Ticks in currency."""

    def ticks(self, price: float) -> int:
        """Currency in whole ticks, to the nearest."""

    def quantity(self, lots: int) -> float:
        """Lots in units of the underlying (contracts times multiplier)."""

    def lots_of(self, other: Instrument, lots: int) -> int:
        """Our whole lots within `lots` of another instrument."""

    def __repr__(self) -> str: ...

class Book:
    """Our book of one instrument; alive until the handler returns."""

    @property
    def instrument(self) -> object: ...

    @property
    def bid(self) -> int | None:
        """Best bid [ticks], None: no bids."""

    @property
    def ask(self) -> int | None:
        """Best ask [ticks], None: no asks."""

    @property
    def bid_lots(self) -> int: ...

    @property
    def ask_lots(self) -> int: ...

    @property
    def mid(self) -> float:
        """Middle of the touch [ticks]; NaN unless two-sided."""

    @property
    def micro_price(self) -> float:
        """
        Touch weighted by the opposite side's size [ticks]; NaN unless two-sided.
        """

    @property
    def spread(self) -> int | None: ...

    @property
    def touch(self) -> tuple: ...

    @property
    def live(self) -> bool:
        """
        False before the first packet, inside a snapshot and after lost messages.
        """

    @property
    def two_sided(self) -> bool: ...

    @property
    def trading(self) -> object: ...

    @property
    def ts_event(self) -> int: ...

    @property
    def ts_recv(self) -> int: ...

    @property
    def age_ns(self) -> int:
        """Since the last packet, on our clock."""

    @property
    def last_price(self) -> int | None: ...

    def lots_at(self, side: int, price: int) -> int: ...

    def queue(self, side: int, price: int) -> list[tuple[int, int]]:
        """
        Orders at a price [ticks], first in the queue first: (id, lots); needs an L3 feed.
        """

    def order_count(self, side: int, price: int) -> int:
        """Orders at a price [ticks]; needs an L3 feed."""

    def levels(self, side: int, n: int = 10) -> list[tuple[int, int]]:
        """[(price, lots)] from the best outwards."""

    def price(self, ticks: float) -> float: ...

    def copy(self) -> object:
        """A frozen copy that outlives the handler."""

class Row:
    """One features row; alive until the handler returns."""

    @property
    def instrument(self) -> object: ...

    @property
    def ts(self) -> int: ...

    @property
    def names(self) -> list: ...

    def __getitem__(self, arg: str, /) -> float: ...

    def __getattr__(self, arg: str, /) -> float: ...

    def copy(self) -> object:
        """A frozen copy that outlives the handler."""

class Signal:
    """
    What a model said of one features row; alive until the handler returns.
    """

    @property
    def instrument(self) -> object: ...

    @property
    def ts(self) -> int:
        """When its features row was made."""

    @property
    def ts_event(self) -> int: ...

    @property
    def age_ns(self) -> int:
        """Since the packet behind its features reached us."""

    @property
    def reused(self) -> bool:
        """The answer of an earlier row, near enough to stand for this one's."""

    @property
    def tier(self) -> str: ...

    @property
    def version(self) -> int:
        """
        Number of the swap that brought the bundle; 0: it was there at the start.
        """

    @property
    def model(self) -> str: ...

    @property
    def names(self) -> list: ...

    @property
    def confidence(self) -> float:
        """Largest class probability."""

    def __getitem__(self, arg: str, /) -> float: ...

    def copy(self) -> object:
        """A frozen copy that outlives the handler."""

class Trade:
    """A market print, or a small datum."""

    @property
    def instrument(self) -> object: ...

    @property
    def price(self) -> int: ...

    @property
    def lots(self) -> int: ...

    @property
    def side(self) -> int:
        """The aggressor's; 0: not told."""

    @property
    def ts_event(self) -> int: ...

    @property
    def ts_recv(self) -> int: ...

    @property
    def kind(self) -> object: ...

    @property
    def value(self) -> float:
        """A datum's payload."""

class Order:
    """An order as we know it now."""

    @property
    def id(self) -> int: ...

    @property
    def instrument(self) -> object: ...

    @property
    def side(self) -> int: ...

    @property
    def price(self) -> int | None:
        """[ticks], as confirmed; None: market."""

    @property
    def lots(self) -> int:
        """Total size, as confirmed."""

    @property
    def cum_lots(self) -> int:
        """Filled."""

    @property
    def leaves_lots(self) -> int:
        """Still open; 0 when it is over."""

    @property
    def avg_price(self) -> float:
        """[ticks]; NaN before the first fill."""

    @property
    def state(self) -> object: ...

    @property
    def reason(self) -> object: ...

    @property
    def tif(self) -> object: ...

    @property
    def tag(self) -> str: ...

    @property
    def alive(self) -> bool: ...

    @property
    def cancellable(self) -> bool:
        """Confirmed, with no request in flight."""

    @property
    def rejected(self) -> bool: ...

    @property
    def filled(self) -> bool: ...

    @property
    def ahead_at_accept(self) -> float: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class Fill:
    """A fill of one of our orders."""

    @property
    def order(self) -> object: ...

    @property
    def instrument(self) -> object: ...

    @property
    def side(self) -> object: ...

    @property
    def price(self) -> int: ...

    @property
    def lots(self) -> int: ...

    @property
    def maker(self) -> bool: ...

    @property
    def fee(self) -> float:
        """[currency], negative: a rebate."""

    @property
    def reason(self) -> object: ...

    @property
    def ts_venue(self) -> int: ...

    @property
    def ts(self) -> int: ...

class Bar:
    """Prints of one interval of our clock."""

    @property
    def instrument(self) -> object: ...

    @property
    def ts_open(self) -> int: ...

    @property
    def ts_close(self) -> int: ...

    @property
    def open(self) -> int: ...

    @property
    def high(self) -> int: ...

    @property
    def low(self) -> int: ...

    @property
    def close(self) -> int: ...

    @property
    def lots(self) -> int: ...

    @property
    def buy_lots(self) -> int: ...

    @property
    def prints(self) -> int: ...

class Position:
    """Our position in one instrument, as fills reached us."""

    @property
    def lots(self) -> int: ...

    @property
    def flat(self) -> bool: ...

    @property
    def avg_price(self) -> float:
        """Average cost [ticks]."""

    @property
    def equity(self) -> float:
        """Cash plus the position at the mid, after fees and funding [currency]."""

    @property
    def cash(self) -> float: ...

    @property
    def fees(self) -> float: ...

    @property
    def funding(self) -> float: ...

    @property
    def turnover(self) -> float: ...

class Timer:
    @property
    def id(self) -> int: ...

    def cancel(self) -> None: ...

class ParentOrder:
    """An order worked in slices: `submit(..., parent=it)`."""

    @property
    def id(self) -> int: ...

    @property
    def instrument(self) -> object: ...

    @property
    def side(self) -> int: ...

    @property
    def lots(self) -> int: ...

    @property
    def filled_lots(self) -> int: ...

    @property
    def leaves_lots(self) -> int: ...

class StrategyBase:
    """Native base of hft.Strategy: what a strategy reads and does."""

    def __init__(self) -> None: ...

    @property
    def now(self) -> int:
        """Our clock [ns since the epoch, UTC]."""

    @overload
    def book(self) -> object: ...

    @overload
    def book(self, inst: Instrument | str) -> object:
        """Our book of an instrument, as a view."""

    @overload
    def position(self) -> object: ...

    @overload
    def position(self, inst: Instrument | str) -> object: ...

    def orders(self, inst: object | None = None, *, tag: str | None = None) -> list:
        """Orders that are not over."""

    @overload
    def submit(self, inst: Instrument | str, side: int, lots: int, price: object | None = None, tif: int = 0, tag: str = '', cause: object | None = None, parent: object | None = None) -> object:
        """Sends an order when the handler returns; price None: market."""

    @overload
    def submit(self, side: int, lots: int, price: object | None = None, tif: int = 0, tag: str = '', cause: object | None = None, parent: object | None = None) -> object: ...

    def cancel(self, order: object) -> bool:
        """False: the order is over or already being cancelled."""

    def replace(self, order: object, price: object | None = None, lots: int | None = None) -> bool:
        """
        New price or total size (filled part included). False: it is over, or the risk gate refused.
        """

    def cancel_all(self, inst: object | None = None, *, tag: str | None = None) -> None: ...

    def flatten(self, inst: object | None = None) -> None:
        """Cancels everything and closes the position at the market."""

    @overload
    def quotes(self, bid: object, ask: object, lots: int) -> None: ...

    @overload
    def quotes(self, inst: Instrument | str, bid: object, ask: object, lots: int) -> None:
        """
        One bid and one ask that should rest; floats round outward and passive prices stop at the touch.
        """

    @overload
    def quote(self, side: int, price: object, lots: int) -> None: ...

    @overload
    def quote(self, inst: Instrument | str, side: int, price: object, lots: int) -> None:
        """One order that should rest on a side; 0 lots pulls it."""

    @overload
    def ladder(self, side: int, start: object, step: int, levels: int, lots: int) -> None: ...

    @overload
    def ladder(self, inst: Instrument | str, side: int, start: object, step: int, levels: int, lots: int) -> None:
        """
        `levels` orders from `start` outwards in steps of `step` ticks that should rest on a side; 0 lots pulls them.
        """

    def every(self, interval: str | int, fn: object | None = None, *args: object, if_changed: object | None = None) -> Timer:
        """
        Calls fn(*args), or on_timer, every interval; with if_changed only when the touch, the position or the orders changed.
        """

    def at(self, ts: int, fn: object, *args: object) -> Timer:
        """Calls fn(*args) once at a time of our clock."""

    def parent_order(self, inst: Instrument | str, side: int, lots: int) -> ParentOrder: ...

    @property
    def listed(self) -> list:
        """All instruments of the run, in order."""

class Latency:
    """
    How long one leg takes, as a function of the time of sending and the number of the message in that instant. `leg` names it in what is refused.
    """

    @staticmethod
    def constant(ns: int, leg: str = 'latency') -> Latency: ...

    @staticmethod
    def recorded(ts: object, ns: object, leg: str = 'latency') -> Latency:
        """The row at or before holds, before the first row the first."""

    @staticmethod
    def empirical(ns: object, seed: int, stream: int, leg: str = 'latency') -> Latency:
        """Sample draw_bits(seed, stream, ts, n) % len(ns)."""

    @staticmethod
    def walk(ts: object, ns: object, block_ts: object, block_at: object, leg: str = 'latency') -> Latency:
        """
        From block_ts[i] on the trace is read from its row block_at[i] on, circular; the row nearest in time, of two as near the earlier.
        """

    @staticmethod
    def by_order(ids: object, ns: object, otherwise: Latency, leg: str = 'latency') -> Latency:
        """Ascending order ids, and how long each one's messages took."""

    def at(self, ts: object, n: object | None = None, order: object | None = None) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        Delays [ns] of messages sent at `ts`, (m,); the n-th of that instant, by default 0; about `order`, by default none.
        """

    def scaled(self, factor: float, leg: str = 'latency') -> Latency:
        """Every delay times `factor`, to the nearest ns, halves to even."""

    @property
    def least(self) -> int: ...

    @property
    def median(self) -> int: ...

def draw_bits(seed: int, stream: int, entity: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], n: int = 0) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
    """64 bits an entity, (m,)."""

class VenueConfig:
    def __init__(self) -> None: ...

    @property
    def queue_model(self) -> int: ...

    @queue_model.setter
    def queue_model(self, arg: int, /) -> None: ...

    @property
    def queue_n(self) -> float: ...

    @queue_n.setter
    def queue_n(self, arg: float, /) -> None: ...

    @property
    def matching(self) -> int: ...

    @matching.setter
    def matching(self, arg: int, /) -> None: ...

    @property
    def replace_keeps(self) -> int: ...

    @replace_keeps.setter
    def replace_keeps(self, arg: int, /) -> None: ...

    @property
    def partial_fills(self) -> bool: ...

    @partial_fills.setter
    def partial_fills(self, arg: bool, /) -> None: ...

    @property
    def share_prints(self) -> bool: ...

    @share_prints.setter
    def share_prints(self, arg: bool, /) -> None: ...

    @property
    def through_fills_all(self) -> bool: ...

    @through_fills_all.setter
    def through_fills_all(self, arg: bool, /) -> None: ...

    @property
    def fill_on_cross(self) -> bool: ...

    @fill_on_cross.setter
    def fill_on_cross(self, arg: bool, /) -> None: ...

    @property
    def refill_half_life_ns(self) -> int: ...

    @refill_half_life_ns.setter
    def refill_half_life_ns(self, arg: int, /) -> None: ...

    @property
    def queue_draws(self) -> bool: ...

    @queue_draws.setter
    def queue_draws(self, arg: bool, /) -> None: ...

    @property
    def refill_probability(self) -> float: ...

    @refill_probability.setter
    def refill_probability(self, arg: float, /) -> None: ...

    @property
    def fade(self) -> float: ...

    @fade.setter
    def fade(self, arg: float, /) -> None: ...

    @property
    def fade_compounds(self) -> bool: ...

    @fade_compounds.setter
    def fade_compounds(self, arg: bool, /) -> None: ...

    @property
    def participation_window_ns(self) -> int: ...

    @participation_window_ns.setter
    def participation_window_ns(self, arg: int, /) -> None: ...

    @property
    def participation_flag(self) -> float: ...

    @participation_flag.setter
    def participation_flag(self, arg: float, /) -> None: ...

    @property
    def participation_cap(self) -> float: ...

    @participation_cap.setter
    def participation_cap(self, arg: float, /) -> None: ...

    @property
    def depth_is_touch(self) -> bool: ...

    @depth_is_touch.setter
    def depth_is_touch(self, arg: bool, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    def set_impact(self, weights: Sequence[float], half_lives_ns: Sequence[int], permanent: float) -> None:
        """Weights in ticks a lot."""

    def set_slippage(self, model: int, coefficient: float, horizon_ns: int) -> None: ...

    def set_latency(self, entry: Latency, response: Latency, entry_cancel: Latency | None = None, entry_replace: Latency | None = None, ordering: int = 0) -> None:
        """
        Ordering 0: fifo, 1: independent. A message's entry and its first answer are drawn from the same sample where both legs are laid out alike.
        """

class RiskLimits:
    def __init__(self) -> None: ...

    @property
    def max_order_lots(self) -> int: ...

    @max_order_lots.setter
    def max_order_lots(self, arg: int, /) -> None: ...

    @property
    def max_position_lots(self) -> int: ...

    @max_position_lots.setter
    def max_position_lots(self, arg: int, /) -> None: ...

    @property
    def max_open_orders(self) -> int: ...

    @max_open_orders.setter
    def max_open_orders(self, arg: int, /) -> None: ...

    @property
    def collar_bps(self) -> int: ...

    @collar_bps.setter
    def collar_bps(self, arg: int, /) -> None: ...

    @property
    def max_messages(self) -> int: ...

    @max_messages.setter
    def max_messages(self, arg: int, /) -> None: ...

    @property
    def window_ns(self) -> int: ...

    @window_ns.setter
    def window_ns(self, arg: int, /) -> None: ...

class ServerConfig:
    """The inference server of a replay."""

    def __init__(self) -> None: ...

    @property
    def mode(self) -> int:
        """0: conflate, 1: queue, 2: skip, 3: deadline."""

    @mode.setter
    def mode(self, arg: int, /) -> None: ...

    @property
    def bound(self) -> int: ...

    @bound.setter
    def bound(self, arg: int, /) -> None: ...

    @property
    def deadline_ns(self) -> int: ...

    @deadline_ns.setter
    def deadline_ns(self, arg: int, /) -> None: ...

    @property
    def max_batch(self) -> int: ...

    @max_batch.setter
    def max_batch(self, arg: int, /) -> None: ...

    @property
    def hold_ns(self) -> int: ...

    @hold_ns.setter
    def hold_ns(self, arg: int, /) -> None: ...

    @property
    def per_item_ns(self) -> int: ...

    @per_item_ns.setter
    def per_item_ns(self, arg: int, /) -> None: ...

    @property
    def per_row_ns(self) -> int: ...

    @per_row_ns.setter
    def per_row_ns(self, arg: int, /) -> None: ...

    @property
    def service(self) -> Latency: ...

    @service.setter
    def service(self, arg: Latency, /) -> None: ...

class ReuseRule:
    """When a model's answer is given again (docs/reuse.md)."""

    def __init__(self, *, mean: Sequence[float], scale: Sequence[float], clip: float, window_rows: int, classes: int, has_forecast: bool, sensitivity: float, epsilon: float, max_reuse: int, max_age_ns: int, shadow: float, budget: float, pause_ns: int) -> None: ...

class EngineConfig:
    def __init__(self) -> None: ...

    @property
    def risk(self) -> RiskLimits: ...

    @risk.setter
    def risk(self, arg: RiskLimits, /) -> None: ...

    @property
    def moves(self) -> int: ...

    @moves.setter
    def moves(self, arg: int, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def placebo(self) -> bool: ...

    @placebo.setter
    def placebo(self, arg: bool, /) -> None: ...

    @property
    def sees_own(self) -> bool: ...

    @sees_own.setter
    def sees_own(self, arg: bool, /) -> None: ...

def make_instrument(id: int, venue_id: int, symbol: str, venue: str, tick: float, lot: float, multiplier: float, inverse: bool, maker_e9: int, taker_e9: int, can_replace: bool) -> Instrument: ...

class Replay:
    """A run of one strategy over recorded or synthetic rows."""

    def __init__(self, instruments: Sequence[Instrument], engine: EngineConfig, venues: Sequence[VenueConfig], compute: Latency, risk: Latency, server: ServerConfig, sample_ns: int, until: int) -> None: ...

    def add_stream(self, instrument: int, chunks: object, one_book_of_orders: bool = False) -> None: ...

    def set_impact(self, instrument: int, weights: Sequence[float], half_lives_ns: Sequence[int], permanent: float) -> None:
        """
        One instrument's overlay instead of its venue's; weights in ticks a lot.
        """

    def wind_down(self, instrument: int, ts: int) -> None:
        """
        From `ts` on the instrument's orders are cancelled and refused, its position sold.
        """

    def swap_at(self, ts: int, number: int, model: int, computes: object, window_rows: int, warm_up_rows: int, hash: int, reuse: ReuseRule | None = None, trails: Trails | None = None) -> None:
        """
        At `ts` another bundle begins to run beside the old one; in order of time.
        """

    def profile(self) -> None:
        """Times each stage; costs a few clock reads an input."""

    @property
    def handler_failed(self) -> bool:
        """What ended the run was raised in a handler."""

    def run(self, strategy: object, poll: object | None = None) -> None: ...

    def results(self) -> dict: ...

    def venue_position(self, instrument: int) -> int: ...

    def add_source(self, instrument: int, specs: Sequence[FeatureSpec], trigger: Trigger, computes: object | None, model: int, warm_up_rows: int, publish_rows: bool, reactive: bool, window_rows: int = 0, version: int = 0) -> None:
        """
        `computes`: a Network (over `window_rows`), a backend, or None; after `set_model`.
        """

    def set_model(self, model: int, name: str, tier: str, outputs: dict, columns: dict) -> None: ...

    def reuse(self, model: int, rule: ReuseRule) -> None:
        """The model's answers may be given again; after `add_source`."""

    def trail(self, model: int, trails: Trails) -> None:
        """The model's rows are scaled by what trails; after `add_source`."""

    def make_bars(self, interval_ns: int) -> None: ...

    def keep_rows(self) -> None:
        """From now on features rows are kept until `take_rows`."""

    def take_rows(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Rows since the last call: (n, 3) ts, instrument, model; and their values, flat.
        """

class CancelPass:
    """Where cancelled lots stood in their queue."""

    def __init__(self, near: int, seed: int) -> None: ...

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """
        EVENT rows viewed as (n, 8) int64 -> (k, 11) int64, `hft.fitting.tape.CANCEL`.
        """

class TapePass:
    """Price, depth and prints on the venue's clock."""

    def __init__(self, step_ns: int, levels: int) -> None: ...

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> None:
        """EVENT rows viewed as (n, 8) int64."""

    def finish(self) -> None:
        """End a sweep that is still open."""

    def take(self) -> tuple:
        """
        What was found since the last call: grid (k, 7), sweeps (s, 6), mids (m, 2), int64.
        """

    @property
    def unsided(self) -> int: ...

def decayed_sum(at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], half_life_ns: float) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    Sum of values_i * 2^(-(at - ts_i) / half_life) over ts_i <= at, (len(at),).
    """

class GhostScan:
    """A first pass over a feed of orders: who may be hidden."""

    def __init__(self, levels: int, keeps: int, seed: int) -> None: ...

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> None:
        """EVENT rows viewed as (n, 8) int64."""

    @property
    def candidates(self) -> int: ...

    @property
    def saw_orders(self) -> bool: ...

    def choose(self, most: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """At most this many of their rows, by keyed draws, rising."""

class Ghosts:
    """Orders hidden one by one, and what queue models make of each."""

    def __init__(self, rows: Sequence[int], models: Sequence[tuple[int, float]], particles: int, horizon_ns: int, prints_removed: bool, keeps: int, seed: int) -> None:
        """`models`: of each its number and n."""

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> None:
        """EVENT rows viewed as (n, 8) int64."""

    def finish(self) -> None: ...

    def rows(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """GhostRow bytes, (n, 11)."""

    def forecasts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
        """GhostForecast bytes, (n * models, 4), ghost by ghost."""

def touches_at(chunks: Iterable, ts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None, None))]:
    """
    The venue's (bid, ask) in ticks after all rows with ts_event <= each of the ascending times, (n, 2); the least int64 where a side is empty or the book unknown.

    chunks: EVENT rows of one instrument viewed as (n, 8) int64, in order.
    """

class ItchRows:
    """ITCH 5.0 messages behind their lengths, as rows of a stock."""

    def __init__(self, locate: int, midnight: int, tick: int, lenient: bool = False) -> None:
        """
        `midnight`: of the day in New York, ns; `tick`: in 1/10,000 dollar; `lenient`: leave out and count messages that cannot be read.
        """

    def fill(self, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], buffer: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]:
        """
        Decode whole messages from the front of `data` into a writable buffer of EVENT bytes; returns bytes consumed and rows written. Flags lack LAST.
        """

    def counts(self) -> dict: ...

    @property
    def resting(self) -> int:
        """Orders that rest now."""

class ItchDirectory:
    """Stocks of an ITCH 5.0 file."""

    def __init__(self) -> None: ...

    def read(self, data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Bytes of whole messages consumed from the front."""

    def stocks(self) -> list[tuple[str, int, int]]:
        """(symbol, locate, messages of book, prints and trading actions)."""

class LiveSim:
    """A strategy on the wall clock against the simulated venue."""

    def __init__(self, instruments: Sequence[Instrument], engine: EngineConfig, market: SimMarketConfig, entry_ns: int, response_ns: int, feed_ns: int, sample_ns: int, journal: str, rows: str, nap_ns: int = 0, feed_rows: int = 65536, max_batch: int = 1, hold_ns: int = 0) -> None:
        """
        `max_batch` above 1: rows of models wait for company, for `hold_ns` at most.
        """

    def run(self, strategy: object, duration_ns: int, watch: object | None = None) -> None:
        """`watch` is called each millisecond when there is time."""

    def lend(self, on: bool) -> None:
        """
        While on, another Python thread gets the interpreter whenever the session is idle.
        """

    def swap(self, number: int, model: int, computes: object, window_rows: int, warm_up_rows: int, hash: int, reuse: ReuseRule | None = None, trails: Trails | None = None) -> bool:
        """
        From `watch`: another bundle begins to run beside the old one; False: it is too late.
        """

    def taken_over(self, number: int) -> dict:
        """Instruments at which that swap has taken over, and when."""

    def dropped(self, number: int) -> tuple[int, str] | None:
        """
        When that swap's bundle failed before it had taken over everywhere, and why.
        """

    def in_use(self, model: int) -> list[int]:
        """
        Swaps whose bundles compute it, or wait to; 0: the bundle of the start.
        """

    def ask_to_stop(self) -> None:
        """Once: winds down. Again: does not wait for the answers that are due."""

    def venue_position(self, instrument: int) -> int:
        """Sum of our fills by the venue's books, after the run."""

    def results(self) -> dict: ...

    def add_source(self, instrument: int, specs: Sequence[FeatureSpec], trigger: Trigger, computes: object | None, model: int, warm_up_rows: int, publish_rows: bool, reactive: bool, window_rows: int = 0, version: int = 0) -> None:
        """
        `computes`: a Network (over `window_rows`), a backend, or None; after `set_model`.
        """

    def set_model(self, model: int, name: str, tier: str, outputs: dict, columns: dict) -> None: ...

    def reuse(self, model: int, rule: ReuseRule) -> None:
        """The model's answers may be given again; after `add_source`."""

    def trail(self, model: int, trails: Trails) -> None:
        """The model's rows are scaled by what trails; after `add_source`."""

    def make_bars(self, interval_ns: int) -> None: ...

    def keep_rows(self) -> None:
        """From now on features rows are kept until `take_rows`."""

    def take_rows(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Rows since the last call: (n, 3) ts, instrument, model; and their values, flat.
        """

class Verify:
    """Feeds a live journal's inputs back into the engine."""

    def __init__(self, instruments: Sequence[Instrument], engine: EngineConfig) -> None: ...

    def run(self, strategy: object, records: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def add_swap(self, number: int, model: int, computes: object, window_rows: int, warm_up_rows: int, hash: int, reuse: ReuseRule | None = None, trails: Trails | None = None) -> None:
        """The bundle of a swap that the journal tells of."""

    @property
    def at(self) -> int:
        """The record being fed when it ended."""

    def results(self) -> dict: ...

    def add_source(self, instrument: int, specs: Sequence[FeatureSpec], trigger: Trigger, computes: object | None, model: int, warm_up_rows: int, publish_rows: bool, reactive: bool, window_rows: int = 0, version: int = 0) -> None:
        """
        `computes`: a Network (over `window_rows`), a backend, or None; after `set_model`.
        """

    def set_model(self, model: int, name: str, tier: str, outputs: dict, columns: dict) -> None: ...

    def reuse(self, model: int, rule: ReuseRule) -> None:
        """The model's answers may be given again; after `add_source`."""

    def trail(self, model: int, trails: Trails) -> None:
        """The model's rows are scaled by what trails; after `add_source`."""

    def make_bars(self, interval_ns: int) -> None: ...

    def keep_rows(self) -> None:
        """From now on features rows are kept until `take_rows`."""

    def take_rows(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None, None))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Rows since the last call: (n, 3) ts, instrument, model; and their values, flat.
        """
