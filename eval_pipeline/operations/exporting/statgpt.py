"""Exports a suite of the track `sdmx` as case files of StatGPT."""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.reports.paths import safe_name
from eval_pipeline.suites import SuiteSource
from eval_pipeline.suites.cases import SuiteCases, read_suite
from eval_pipeline.tracks.base import Track

TRACK = "sdmx"


def write_statgpt_cases(source: SuiteSource, folder: Path) -> int:
    """Writes a YAML file for each case that can be read, and returns their number.

    Targets that people have overridden are written as overridden.

    Raises:
        UsageError: the suite belongs to another track, or the folder holds something already.
        InputError: the suite cannot be read.
    """
    from eval_pipeline.tracks.sdmx.exporters import statgpt_case

    track = source.track()
    if track.name != TRACK:
        raise UsageError(
            f"suite '{source.name}' is of track {track.name}; only suites of track {TRACK} can be exported"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; expected a new or empty folder")
    found = read_suite(source)
    folder.mkdir(parents=True, exist_ok=True)
    used: set[str] = set()
    for number, (content, targets) in enumerate(zip(found.contents, _overridden(track, found), strict=True)):
        case = statgpt_case(json.loads(content), targets)
        name = safe_name(str(case.get("name") or case["id"]))
        if name.lower() in used:
            name = f"{name}_{number}"
        used.add(name.lower())
        text = yaml.safe_dump(case, sort_keys=False, allow_unicode=True, width=1000)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return len(found.contents)


def _overridden(track: Track, found: SuiteCases) -> Iterator[list[dict[str, Json] | None]]:
    """Yields for each case the target of each turn that people have overridden; None for the others."""
    for case in found.cases:
        yield [_target(track, found, case, turn) for turn in case.turns]


def _target(track: Track, found: SuiteCases, case: Case, turn: Turn) -> dict[str, Json] | None:
    scored = found.scored.case(case)
    first, *others = (track.gold_json(held) for _, held in found.scored.accepted(scored, scored.turns[turn.index]))
    if others:
        told = [{"indicator_selection": other["indicator_selection"]} for other in others]
        return {**first, "alternatives": [*first.get("alternatives", ()), *told]}
    return first if first != track.gold_json(turn) else None
