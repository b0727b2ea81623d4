"""What the note of a command says: its runs, and what is due."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from eval_pipeline.core.model import Partition

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Noted:
    """What a note says; `entries` are its lines."""

    entries: tuple[Entry, ...]

    @property
    def command(self) -> str:
        """Name of the command."""
        return next((str(entry["command"]) for entry in self.entries if "command" in entry), "")

    @property
    def unpublished(self) -> list[Partition]:
        """Evaluations that are recorded and not published."""
        found = dict[Partition, None]()
        for entry in self.entries:
            if "unpublished" in entry:
                found[partition_of(entry["unpublished"])] = None
            elif "published" in entry:
                found.clear()
        return list(found)

    @property
    def uncompared(self) -> list[str]:
        """Suites whose comparisons are due: those of recorded evaluations, and of runs that began to evaluate."""
        found = dict[str, None]()
        for entry in self.entries:
            if "unpublished" in entry or "uncompared" in entry:
                found[entry.get("uncompared") or entry["unpublished"][0]] = None
            elif "compared" in entry:
                found.pop(entry["compared"], None)
        return list(found)

    @property
    def due(self) -> list[Entry]:
        """What changes the home and is due until the note is gone, each with its name as `due`."""
        return [entry for entry in self.entries if "due" in entry]

    @property
    def runs(self) -> dict[str, list[Partition]]:
        """Ids of the command's runs, with their evaluations; one that only compares has none."""
        return {
            entry["run"]: [
                partition_of((suite, *_series(entry))) for suite in entry["suites"] if entry["model_version"]
            ]
            for entry in self.entries
            if "suites" in entry
        }

    @property
    def failed_runs(self) -> set[str]:
        """Ids of the runs of which a step failed, or did not pass a check that later ones wait for."""
        return {entry["run"] for entry in self.entries if "stage" in entry and entry.get("error", "")}

    @property
    def open_runs(self) -> dict[str, list[Partition]]:
        """Those that have not ended."""
        done = {entry["run_ended"] for entry in self.entries if "run_ended" in entry}
        return {run: places for run, places in self.runs.items() if run not in done}


def noted(text: str) -> Noted:
    """Returns what a note's text says; the last line of a file may be torn."""
    return Noted(tuple(_entries(text)))


def _entries(text: str) -> Iterator[Entry]:
    for line in text.splitlines():
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry


def partition_of(told: Sequence[str]) -> Partition:
    """Returns the evaluation of a note's list of suite, model version and date, and the id of an earlier one."""
    suite, model_version, day, *evaluation = told
    return Partition(suite, model_version, date.fromisoformat(day), *evaluation)


def told_of(place: Partition) -> list[str]:
    """Returns the list by which a note names an evaluation."""
    named = [place.suite, place.model_version, place.eval_date.isoformat(), place.evaluation]
    return [text for text in named if text]


def _series(entry: Entry) -> tuple[str, str]:
    return entry["model_version"], entry["eval_date"]
