"""Parameters of the execution models, estimated from market data; see docs/fitting.md."""
