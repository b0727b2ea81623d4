"""The tracks and the importers of foreign data sets, by name: plug-ins, of ours and of others."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.installed.plugins import Plugin, Registry, absent, install, installed, or_warned
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.tracks.base import Task, Track
from eval_pipeline.tracks.manifest import Manifest

Importer = Callable[..., Iterator[dict[str, Json]]]
"""Reads a foreign data set: (source, limit) → cases in the suite's file format.

If its `ForeignForm` has `further`, it takes (source, limit, further files, folder of the suite), with `takes_folder`
(source, limit, folder of the suite): it may write files of the suite to that folder, and what `tracks/importing.py` has
for it: options of the suite, notes, entries that are left out.
"""


@dataclass(frozen=True, slots=True)
class ForeignForm:
    """A format of foreign data sets.

    Attributes:
        track: track of the resulting suite.
        place: place of its importer.
        further: option of `eval-pipeline import <form>` that takes additional files, e.g. `structures`; may be empty.
        further_help: help text of that option.
        takes_folder: whether the importer gets the folder of the suite without further files; for suites with options.
        maps_columns: whether the user assigns the table's columns to fields; the importer then takes (source, limit,
            column by field, answer form, what takes a sentence on how the table was read) and returns the cases and the
            options of the suite.
        leaves_out_wrong_gold: whether it is known to contain turns with invalid gold, whose cases are then left out.
    """

    track: str
    place: str
    further: str = ""
    further_help: str = ""
    leaves_out_wrong_gold: bool = False
    maps_columns: bool = False
    takes_folder: bool = False


REQUIRED: Mapping[str, tuple[str, ...]] = {
    # `pandas` and what answers in it use: correlations of ranks and interpolation need scipy
    "pandas": ("matplotlib", "ruff", "scipy"),
    "sdmx": ("bm25s", "lxml", "pycountry"),
}
"""Track → modules that it cannot work without; the extra of the track's name installs them."""

COMMANDS = frozenset({"predictions", "structures"})
"""Subcommands of `eval-pipeline import` that are none of a plug-in."""


@cache  # as tracks are looked up at each turn
def _manifest(plugin: Plugin, value: Any) -> Manifest:
    if not isinstance(value, Manifest):
        raise plugin.error(f"is no track named '{plugin.name}'")
    if (name := getattr(value, "name", None)) != plugin.name:
        raise plugin.error(f"is no track named '{plugin.name}', but one named '{name}'")
    from eval_pipeline.tracks.scored.turns_table import turns_table  # with all tables; the help of commands needs none

    try:
        turns_table(value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise plugin.error(f"has columns that no table can have: {error}") from error
    return value


def _why_taken(plugin: Plugin) -> str | None:
    logs = {one.name for one in installed() if one.group == "logs"}
    return "has a command's name" if plugin.name in COMMANDS | logs else None


def _form(plugin: Plugin, value: Any) -> ForeignForm:
    if not isinstance(value, ForeignForm):
        raise plugin.error("is no ForeignForm")
    return value


ALL_TRACKS: Registry[Manifest] = Registry("tracks", {}, _manifest)
ALL_IMPORTERS: Registry[ForeignForm] = Registry("importers", {}, _form, _why_taken)


def own_tracks() -> dict[str, Plugin]:
    """Returns the tracks that come along, which are known to fit, without importing them."""
    return {name: plugin for name, plugin in ALL_TRACKS.installed().items() if plugin.is_ours}


def lacks(track: str) -> str | None:
    """Returns a sentence about packages that a track needs and that are not installed; None if it has all."""
    missing = absent(REQUIRED.get(track, ()))
    return f"the track {track} needs {', '.join(missing)}; {install(track)}" if missing else None


def known_tracks() -> str:
    """Returns the names of all tracks, or why there is none."""
    return ", ".join(ALL_TRACKS.names()) or "none, as this package was updated and not installed again (`make setup`)"


def load_track(name: str) -> Track:
    """Returns the track of that name, with all that it does; for its names and columns the manifest suffices.

    Raises:
        UsageError: the name is unknown.
        PluginError: the plug-in cannot be used.
    """
    if name not in ALL_TRACKS:
        raise UsageError(f"unknown track '{name}'; known: {known_tracks()}")
    manifest = ALL_TRACKS.get(name)
    if isinstance(manifest, Task):
        return manifest
    track: Track = ALL_TRACKS.load(name, manifest.task)
    return track


def manifests() -> list[Manifest]:
    """Returns the manifest of every usable track, shipped or installed."""
    return list(ALL_TRACKS.usable().values())


def all_tracks() -> list[Track]:
    """Returns every usable track; one whose task cannot be loaded is logged once as a warning."""
    found = (usable_track(manifest.name) for manifest in manifests())
    return [track for track in found if track is not None]


def usable_track(name: str) -> Track | None:
    """Returns the track of that name; None if it is unknown or cannot be used, which is logged once as a warning."""
    return or_warned(partial(load_track, name)) if name in ALL_TRACKS else None


def prompt_complaints(prompts: Mapping[str, str]) -> Iterator[Complaint]:
    """Yields complaints about the `prompt` of a model version, i.e. its prompt versions by track."""
    for name, version in prompts.items():
        if name not in ALL_TRACKS:
            yield Complaint(("prompt", name), f"unknown track; known: {known_tracks()}")
        elif version not in (known := ALL_TRACKS.get(name).prompt_versions):
            yield Complaint(("prompt", name), f"unknown prompt '{version}'; known: {', '.join(known)}")


def load_importer(name: str) -> tuple[ForeignForm, Importer]:
    """Returns a foreign format and its reader.

    Raises:
        UsageError: it is unknown or cannot be used.
        MissingExtraError: packages of its track are not installed.
    """
    if name not in ALL_IMPORTERS:
        raise UsageError(f"unknown data set format '{name}'; known: {', '.join(ALL_IMPORTERS.names())}")
    form = ALL_IMPORTERS.get(name)
    if why := lacks(form.track):
        raise MissingExtraError(why)
    importer: Importer = ALL_IMPORTERS.load(name, form.place)
    return form, importer
