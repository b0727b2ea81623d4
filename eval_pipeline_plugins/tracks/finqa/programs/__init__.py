"""Programs: what they are, how they run, and when two of them or their results are the same."""
