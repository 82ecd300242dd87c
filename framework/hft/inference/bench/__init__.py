"""What a model takes here: warm, cold, beside others, at a rate, in batches."""
