"""The chain of stages: their dependencies, whether their results are current, and whether these fit together."""
