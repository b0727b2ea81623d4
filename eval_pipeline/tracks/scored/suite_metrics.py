"""Determines the metrics of a suite: those of its track, and those of installed packages that the suite asks for.

An entry point `finqa.has_digits` names the metric `has_digits` for the track `finqa`.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, TypeVar

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.installed.plugins import Plugin, PluginError, Registry
from eval_pipeline.store.schemas import SIMULATED
from eval_pipeline.tracks.manifest import Manifest
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.registry import ALL_TRACKS
from eval_pipeline.tracks.scored.turns_table import COLUMN_TYPES, turns_table

M = TypeVar("M", bound=Manifest)


def _metric(plugin: Plugin, value: Any) -> Metric:
    name = plugin.name.partition(".")[2]
    if not isinstance(value, Metric) or value.name != name:
        raise plugin.error(f"is no Metric named '{name}'")
    if value.kind not in COLUMN_TYPES:
        raise plugin.error(f"is of the kind '{value.kind}'; known: {', '.join(COLUMN_TYPES)}")
    return value


def _why_taken(plugin: Plugin) -> str | None:
    """Returns why `<track>_turns` cannot have a column of that name; None if it can."""
    track_name, _, name = plugin.name.partition(".")
    if not name.isidentifier() or name != name.lower():
        return "is not used: its name has to be <track>.<metric>, in lower case"
    if track_name not in ALL_TRACKS:
        return f"is not used: there is no track '{track_name}'"
    try:
        table = turns_table(ALL_TRACKS.get(track_name))
    except PluginError:
        return f"is not used: its track '{track_name}' cannot be"
    columns = {column.name.lower() for column in (*table.all_columns, SIMULATED)}
    return f"is not used: {table.name} has a column of that name" if name in columns else None


METRICS: Registry[Metric] = Registry("metrics", {}, _metric, _why_taken)


def installed_metrics(track: str) -> list[str]:
    """Returns the names of the metrics that packages add to a track, whether they can be used or not."""
    return [name.removeprefix(f"{track}.") for name in METRICS.installed() if name.startswith(f"{track}.")]


def with_metrics(track: M, names: Sequence[str]) -> M:
    """Returns the track with the additional metrics that a suite asks for; the suite is scored with all of these.

    Raises:
        UsageError: no package provides one of them.
        PluginError: one of them cannot be used.
    """
    own = {metric.name for metric in track.metrics}
    asked = [_installed_metric(track.name, name) for name in dict.fromkeys(names) if name not in own]
    return _extended(track, asked)


def with_every_metric(track: M) -> M:
    """Returns the track with every usable metric that packages add; the store has a column for each."""
    usable = METRICS.usable() if installed_metrics(track.name) else {}
    return _extended(track, [metric for name, metric in usable.items() if name.startswith(f"{track.name}.")])


def _installed_metric(track: str, name: str) -> Metric:
    """Returns an installed metric. Raises UsageError if no package has it, PluginError if it cannot be used."""
    known = installed_metrics(track)
    if name not in known:
        told = f"installed packages add {', '.join(known)}" if known else "no installed package adds any"
        raise UsageError(
            f"no metric '{name}' for track '{track}': beside the track's own, {told}; a package may be missing"
        )
    return METRICS.get(f"{track}.{name}")


def _extended(track: M, metrics: Iterable[Metric]) -> M:
    further = tuple(metrics)
    if not further:
        return track
    extended = copy(track)
    extended.metrics = (*track.metrics, *further)
    return extended
