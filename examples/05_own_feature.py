"""An own feature, one definition for live, replay and training, and what it foretells."""

import numpy as np

from hft import BUY, SELL, Features, OnTrade, Strategy, backtest, feature
from hft.data.synth import SynthConfig, synthesize
from hft.features import compute_features, imbalance, mid


@feature(window="250ms", state=0.0)
def pressure(state, row):
    """Signed flow against what rests within five levels, smoothed; called once a row."""
    state = 0.9 * state + row.signed_lots / (1 + row.depth_lots(5))
    return state, state


FEATURES = Features(mid(), imbalance(levels=5), pressure, trigger=OnTrade())


class Lean(Strategy):
    """Joins only the side that the pressure points to."""

    features = FEATURES

    def on_features(self, row):
        book, held = self.book(row.instrument), self.position(row.instrument).lots
        self.quote(BUY, book.bid, 20 if row.pressure > 0 and held < 100 else 0)
        self.quote(SELL, book.ask, 20 if row.pressure < 0 and held > -100 else 0)


def main() -> None:
    rows, specs = synthesize(SynthConfig(seed=3, duration_s=120, price0_ticks=20_000, tick=1.0))
    events = rows[specs[0].name]
    ts, table = compute_features(events, FEATURES)
    later = np.searchsorted(ts, ts + 500_000_000).clip(max=len(ts) - 1)
    move = table[later, 0] - table[:, 0]
    for name, column in zip(FEATURES.names[1:], table.T[1:], strict=True):
        print(
            f"{name}: correlation with the next half second {np.corrcoef(column, move)[0, 1]:.3f}"
        )
    print(backtest(Lean, rows, specs=specs))


if __name__ == "__main__":
    main()
