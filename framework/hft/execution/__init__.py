"""Execution models: Python faces of what the core does to orders and time."""
