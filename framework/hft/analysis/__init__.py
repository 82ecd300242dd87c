"""Everything after a run: its rows, the figures drawn from them, and how they are shown."""
