"""Builds the table `<track>_turns`, which depends on a track's metrics and features."""

from eval_pipeline.store.schemas import Column, ColumnType, Table
from eval_pipeline.store.tables import track_turns_table
from eval_pipeline.tracks.manifest import Manifest

COLUMN_TYPES: dict[str, ColumnType] = {"boolean": "BOOLEAN", "score": "DOUBLE", "count": "DOUBLE", "label": "VARCHAR"}
"""Kind of metric → type of its column."""


def turns_table(track: Manifest) -> Table:
    """Returns the table `<track>_turns`: one row per turn, with a column for each metric."""
    metrics = [Column(metric.name, COLUMN_TYPES[metric.kind], metric.description) for metric in track.metrics]
    return track_turns_table(track.name, track.feature_columns, track.turn_columns, metrics)
