"""The tracks and the importers of foreign data sets, by name. Add one with a line here, or as a plug-in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eval_pipeline.core.complaints import Complaint
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Json
from eval_pipeline.core.plugins import Plugin, Registry, load_place
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.turns_table import turns_table

Importer = Callable[..., Iterator[dict[str, Json]]]
"""Reads a foreign data set: (source, limit) → cases in the suite's file format.

One whose `ForeignForm` has `further` takes (source, limit, further files, folder of the suite) and may write files
there that belong to the suite.
"""


@dataclass(frozen=True, slots=True)
class ForeignForm:
    """A foreign data set's form.

    Attributes:
        track: of the suite that is made.
        place: where its importer is.
        further: option of `eval-pipeline import <form>` that takes further files, e.g. `structures`; empty for none.
        further_help: what those are.
        leaves_out_wrong_gold: turns whose own gold does not hold are known to be in it: their cases are left out.
    """

    track: str
    place: str
    further: str = ""
    further_help: str = ""
    leaves_out_wrong_gold: bool = False


TRACKS: Mapping[str, str] = {
    "finqa": "eval_pipeline.tracks.finqa.track:TRACK",
    "pandas": "eval_pipeline.tracks.pandas_code.track:TRACK",
    "sdmx": "eval_pipeline.tracks.sdmx.track:TRACK",
    "sql": "eval_pipeline.tracks.sql.track:TRACK",
}
IMPORTERS: Mapping[str, ForeignForm] = {
    "convfinqa": ForeignForm("finqa", "eval_pipeline.tracks.finqa.importers.convfinqa:read_convfinqa"),
    "statgpt": ForeignForm(
        "sdmx",
        "eval_pipeline.tracks.sdmx.importers.statgpt:read_statgpt",
        "structures",
        "SDMX structure message, or a CSV list of terms (may be given again).",
    ),
    "dabench": ForeignForm(
        "pandas",
        "eval_pipeline.tracks.pandas_code.importers.dabench:read_dabench",
        "files",
        "File of labels, table, or folder of such (may be given again).",
    ),
    "pandaseval": ForeignForm(
        "pandas",
        "eval_pipeline.tracks.pandas_code.importers.pandaseval:read_pandaseval",
        leaves_out_wrong_gold=True,
    ),
    **{
        form: ForeignForm(
            "sql",
            f"eval_pipeline.tracks.sql.importers.{form}:read_{form}",
            "databases",
            "SQLite database, or folder of such; schemas and descriptions that the form knows (may be given again).",
        )
        for form in ("spider", "bird", "defog", "querycraft")
    },
}


COMMANDS = frozenset({"predictions", "inspect", "promptfoo", "lm-eval"})
"""Of `eval-pipeline import`, that take in answers."""


def _track(plugin: Plugin, value: Any) -> Track:
    if not hasattr(value, "primary_metric") or getattr(value, "name", None) != plugin.name:
        raise plugin.error(f"is no track named '{plugin.name}'")
    track: Track = value
    try:
        turns_table(track)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise plugin.error(f"has columns that no table can have: {error}") from error
    return track


def _form(plugin: Plugin, value: Any) -> ForeignForm:
    if not isinstance(value, ForeignForm):
        raise plugin.error("is no ForeignForm")
    return value


ALL_TRACKS: Registry[Track] = Registry("tracks", TRACKS, _track)
ALL_IMPORTERS: Registry[ForeignForm] = Registry(
    "importers", IMPORTERS, _form, lambda plugin: "has a command's name" if plugin.name in COMMANDS else None
)


def load_track(name: str) -> Track:
    """The track of that name.

    Raises:
        UsageError: an unknown one.
        PluginError: it is a plug-in that cannot be used.
    """
    if name not in ALL_TRACKS:
        raise UsageError(f"unknown track '{name}'; known: {', '.join(ALL_TRACKS.names())}")
    return ALL_TRACKS.get(name)


def all_tracks() -> list[Track]:
    """Every track that can be used, shipped and installed."""
    return list(ALL_TRACKS.usable().values())


def prompt_complaints(prompts: Mapping[str, str]) -> Iterator[Complaint]:
    """What is wrong with the `prompt` of a model version, its prompt versions by track."""
    for name, version in prompts.items():
        if name not in ALL_TRACKS:
            yield Complaint(("prompt", name), f"unknown track; known: {', '.join(ALL_TRACKS.names())}")
        elif version not in (known := load_track(name).prompt_versions):
            yield Complaint(("prompt", name), f"unknown prompt '{version}'; known: {', '.join(known)}")


def load_importer(name: str) -> tuple[ForeignForm, Importer]:
    """A foreign form and its reader. Raises UsageError for an unknown one, or one that cannot be used."""
    if name not in ALL_IMPORTERS:
        raise UsageError(f"unknown data set format '{name}'; known: {', '.join(ALL_IMPORTERS.names())}")
    form = ALL_IMPORTERS.get(name)
    plugin = None if name in IMPORTERS else ALL_IMPORTERS.installed()[name]
    importer: Importer = load_place(form.place) if plugin is None else replace(plugin, place=form.place).load()
    return form, importer
