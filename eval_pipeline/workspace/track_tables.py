"""Tables that follow from a track's metrics and features."""

from collections.abc import Sequence

from eval_pipeline.store.schemas import Column, ColumnType, Table
from eval_pipeline.store.tables import track_turns_table
from eval_pipeline.tracks.base import Metric, Track
from eval_pipeline.tracks.capabilities import Judged, suite_tables_of, turn_tables_of
from eval_pipeline.tracks.registry import TRACKS, load_track

_TYPES: dict[str, ColumnType] = {"boolean": "BOOLEAN", "score": "DOUBLE", "count": "DOUBLE", "label": "VARCHAR"}


def turns_table(track: Track) -> Table:
    """The `<track>_turns` table: one row a turn with every metric as a column."""
    return track_turns_table(track.name, track.feature_columns, track.turn_columns, [_column(m) for m in track.metrics])


def track_tables() -> list[Table]:
    """The tables of every registered track: `<track>_turns`, its further ones of turns, those of its suites."""
    tracks = [load_track(name) for name in TRACKS]
    return [
        table for track in tracks for table in (turns_table(track), *turn_tables_of(track), *suite_tables_of(track))
    ]


def are_judged(tables: Sequence[Table]) -> bool:
    """Whether one of the tables is `<track>_turns` of a track that has a judge."""
    names = {table.name for table in tables}
    return any(isinstance(track, Judged) and turns_table(track).name in names for track in map(load_track, TRACKS))


def _column(metric: Metric) -> Column:
    return Column(metric.name, _TYPES[metric.kind], metric.description)
