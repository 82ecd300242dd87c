"""A run's features, made once more: `hft check skew`."""
