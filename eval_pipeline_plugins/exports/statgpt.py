"""Exports a suite of the track `sdmx` as case files of StatGPT, which `data_sets.sdmx.statgpt` reads back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.reports.places.paths import safe_name
from eval_pipeline.suites.cases import SuiteCases, read_suite
from eval_pipeline.suites.headers import SuiteSource
from eval_pipeline.tracks.base import Track

TRACK = "sdmx"


def write_statgpt_cases(source: SuiteSource, folder: Path) -> int:
    """Writes a YAML file for each case that can be read, and returns their number.

    Targets that people have overridden are written as overridden.

    Raises:
        UsageError: the suite belongs to another track, or the folder holds something already.
        InputError: the suite cannot be read.
    """
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
        case = _case(json.loads(content), targets)
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
        yield [_overridden_target(track, found, case, turn) for turn in case.turns]


def _overridden_target(track: Track, found: SuiteCases, case: Case, turn: Turn) -> dict[str, Json] | None:
    scored = found.scored.case(case)
    first, *others = (track.gold_json(held) for _, held in found.scored.accepted(scored, scored.turns[turn.index]))
    if others:
        told = [{"indicator_selection": other["indicator_selection"]} for other in others]
        return {**first, "alternatives": [*first.get("alternatives", ()), *told]}
    return first if first != track.gold_json(turn) else None


def _case(raw: Mapping[str, Json], targets: Sequence[Mapping[str, Json] | None]) -> dict[str, Json]:
    """Returns a case in StatGPT's form.

    Args:
        raw: the case in the suite's file format.
        targets: for each turn its target if it is another one than in the file, since people have overridden it.
    """
    conversation = [
        {"role": turn["role"], "content": turn["content"], "target": _target(turn["target"], other)}
        for turn, other in zip(raw["conversation"], targets, strict=True)
    ]
    kept = {name: raw[name] for name in ("id", "name", "tags", "comments", "source") if raw.get(name)}
    rejected = raw.get("rejected_datasets")
    return kept | {"conversation": conversation} | ({"rejected_datasets": rejected} if rejected else {})


def _target(written: Mapping[str, Json], other: Mapping[str, Json] | None) -> dict[str, Json]:
    told = other or written
    target: dict[str, Json] = {"is_out_of_scope": bool(told.get("is_out_of_scope"))}
    target |= {name: written[name] for name in ("tool_calls", "datasets_selection") if name in written}
    target["indicator_selection"] = told.get("indicator_selection") or []
    return target | ({"alternatives": told["alternatives"]} if told.get("alternatives") else {})
