"""The C++ core of hft."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


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

    def feed(self, words: Annotated[NDArray[numpy.int64], dict(shape=(None, 8), order='C', device='cpu', writable=False)]) -> tuple:
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

def lstm_layer(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> LstmLayer:
    """
    Weights as Keras holds them: (inputs, 4 u), (u, 4 u), (4 u), gates i, f, c, o.
    """

def dense_layer(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], activation: str = 'linear') -> DenseLayer: ...

class Network:
    """An immutable network; each stream has its own memory."""

    @property
    def inputs(self) -> int: ...

    @property
    def outputs(self) -> int: ...

    @property
    def parameters(self) -> int: ...

    @property
    def isa(self) -> str:
        """
        Instruction set it runs on; results are the same bits on avx512 and avx2.
        """

def build_network(mean: Sequence[float], scale: Sequence[float], clip: float, layers: Sequence[LstmLayer | DenseLayer], move_ticks: Sequence[float] = [], shrink: float = 1.0, isa: str = '') -> Network: ...

class NetworkStream:
    """A network running over one stream of rows."""

    def __init__(self, network: Network) -> None: ...

    def batch(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> object:
        """
        (n, inputs) float64 -> (n, outputs) float32; memory carries on to the next call.
        """

    def steps(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], armed: bool = False) -> object: ...

    def arm(self) -> None: ...

    def reset(self) -> None: ...

def best_isa() -> str: ...

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
