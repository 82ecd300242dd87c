"""Rows for any trainer, made by the engine's own code: `hft dataset`."""
