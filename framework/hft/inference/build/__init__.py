"""`hft build`: every form of a model, and the gates each is held against."""
