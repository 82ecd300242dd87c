"""Model bundles, and training them."""
