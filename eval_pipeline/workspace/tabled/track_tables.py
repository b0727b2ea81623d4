"""The tables defined by tracks, with their metrics and features, and by plug-ins."""

from typing import Any, get_args

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.installed.plugins import Plugin, Registry
from eval_pipeline.store.published.ddl import view_names
from eval_pipeline.store.schemas import ColumnType, Table
from eval_pipeline.store.tables import ERRORS, METRIC_ERRORS, TURN_RESULTS, all_tables
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.registry import known_tracks, manifests, own_tracks
from eval_pipeline.tracks.scored.suite_metrics import with_every_metric
from eval_pipeline.tracks.scored.turns_table import turns_table

__all__ = ["INSTALLED_AGGREGATES", "further_tables", "scored_tables", "track_tables", "turns_table"]


def _aggregate(plugin: Plugin, value: Any) -> Any:
    table = getattr(value, "table", None)
    if not isinstance(table, Table) or table.name != plugin.name or table.key != "partition":
        raise plugin.error(f"is no Aggregate with a table '{plugin.name}' that has a row an evaluation or more")
    names = [column.name.lower() for column in table.published_columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise plugin.error(f"would have more than one column named {', '.join(twice)}")
    if odd := sorted(column.name for column in table.columns if column.type not in get_args(ColumnType)):
        raise plugin.error(f"has columns of no known type: {', '.join(odd)}")
    return value


def _why_taken(plugin: Plugin) -> str | None:
    if not plugin.name.isidentifier() or plugin.name != plugin.name.lower():
        return "is not used: its name has to be one of a table, in lower case"
    taken = plugin.name in {table.name.lower() for table in all_tables(track_tables())} | view_names()
    return "is not used: there is a table or view of that name" if taken else None


INSTALLED_AGGREGATES: Registry[Any] = Registry("aggregates", {}, _aggregate, _why_taken)
"""Aggregates added by plug-ins, by table name; `analysis.aggregates` has all aggregates."""


def track_tables() -> list[Table]:
    """Returns the tables of every track.

    These are `<track>_turns` with every metric, further tables of turns, and tables of suites.

    Raises:
        UsageError: our own tracks are not found: a store without their tables would lose them.
    """
    if not own_tracks():
        raise UsageError(f"the tracks are not found: known are {known_tracks()}")
    found = map(with_every_metric, manifests())
    return [table for track in found for table in (turns_table(track), *track.turn_tables, *track.suite_tables)]


def further_tables() -> list[Table]:
    """Returns the store's tables in addition to its own: those of tracks, and of aggregates added by plug-ins."""
    return [*track_tables(), *(found.table for found in INSTALLED_AGGREGATES.usable().values())]


def partition_tables() -> list[Table]:
    """Returns the tables with a file for each partition, last-made first, so that no remainder looks complete."""
    found = [source for table in all_tables(further_tables()) for source in table.record_tables()]
    return [table for table in reversed(found) if table.key == "partition"]


def scored_tables(track: Manifest) -> tuple[Table, ...]:
    """Returns the tables of scored turns from which figures over many turns are computed."""
    return (TURN_RESULTS, turns_table(track), *track.turn_tables, ERRORS, METRIC_ERRORS)
