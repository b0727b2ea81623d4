"""Stand-ins for a model: recorded answers, simulated answers, the gold answer, no answer."""
