"""The chain of every suite as Dagster assets."""
