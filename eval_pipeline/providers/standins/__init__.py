"""What stands in for a model: recorded answers, simulated ones, the gold, nothing."""
