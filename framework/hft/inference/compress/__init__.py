"""Makes a model smaller: fewer units, fewer bits, or another model that repeats its answers."""
