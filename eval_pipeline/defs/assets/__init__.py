"""The chain of stages of every suite as Dagster assets."""
