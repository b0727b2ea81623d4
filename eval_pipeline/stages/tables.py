"""Tables that follow from a track's metrics and features."""

from eval_pipeline.store.schemas import Column, ColumnType, Table
from eval_pipeline.store.tables import track_turns_table
from eval_pipeline.tracks.base import TRACKS, Metric, Track, load_track

_TYPES: dict[str, ColumnType] = {"boolean": "BOOLEAN", "score": "DOUBLE", "count": "DOUBLE", "label": "VARCHAR"}


def turns_table(track: Track) -> Table:
    """The `<track>_turns` table: one row a turn with every metric as a column."""
    return track_turns_table(track.name, track.feature_columns, track.turn_columns, [_column(m) for m in track.metrics])


def track_tables() -> list[Table]:
    """The per-turn tables of every registered track."""
    return [turns_table(load_track(name)) for name in TRACKS]


def _column(metric: Metric) -> Column:
    return Column(metric.name, _TYPES[metric.kind], metric.description)
