"""From rows to a bundle: `hft train`."""
