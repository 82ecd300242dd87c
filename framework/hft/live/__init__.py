"""Running on the wall clock, and proving afterwards that it was the same engine."""
