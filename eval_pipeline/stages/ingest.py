"""The first stages: they record the suite's files and the cases in them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache, partial
from math import inf
from pathlib import Path

from eval_pipeline.core.ids import file_hash, json_hash, json_text
from eval_pipeline.core.model import Case
from eval_pipeline.stages.settings import loaded as _loaded
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    CASE_PROBLEMS,
    CASES,
    GOLD_OVERRIDES,
    LEFT_OUT_CASES,
    SUITE_EDITIONS,
    SUITES,
    TURNS,
)
from eval_pipeline.suites.cases import SuiteReading
from eval_pipeline.suites.editions import Hashes, SharedRows, editions_of
from eval_pipeline.suites.headers import suite_files
from eval_pipeline.suites.left_out import read_left_out
from eval_pipeline.suites.overrides import NOTHING_OVERRIDDEN, Override, ScoredGold
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Shares
from eval_pipeline.workspace.asked import ranges
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.tabled.columns import CollectedColumns

_CASES_AT_ONCE = 250
"""Number of cases written at once, because their documents are copied while being written."""


def ingest_files(inputs: Inputs, outputs: Outputs) -> None:
    """Records every file of a suite, with its hash, in the table `suites`.

    It does not read the cases, so the files of a suite with wrong cases are recorded too.

    Raises:
        InputError: `suite.yaml` is wrong.
    """
    source, loaded = inputs.workspace.suite(inputs.suite), _loaded(inputs)
    outputs.writer(SUITES).write(
        {
            "track": [loaded.track],
            "version": [loaded.version],
            "description": [loaded.description],
            "licence": [source.require().licence],
            "content_hash": [loaded.content_hash],
            "files": [json_text([_file_facts(name, path) for name, path in suite_files(source)])],
            "options": [json_text(dict(loaded.options))],
        }
    )


def ingest_cases(inputs: Inputs, outputs: Outputs) -> None:
    """Reads and validates the cases of a suite and writes them to `cases`, `turns` and the track's tables.

    It also records the overrides of the gold and the editions of data set and gold.

    Raises:
        InputError: lists every problem in any file; if the track keeps good cases, see `case_problems`.
    """
    source, track = inputs.workspace.suite(inputs.suite), inputs.track
    with busy(inputs.progress, inputs.label("cases")):
        reading = SuiteReading(source)
        shared = track.shared_rows(reading.shared) if isinstance(track, Shares) else None
        shared_hash = None if shared is None else _write_shared(outputs, track.suite_tables, shared)
        hash_of = cache(lambda name: file_hash(source.folder.parent / name))
        as_columns = partial(_pair_columns, hash_of=hash_of, shared_hash=shared_hash)
        rows, hashes = CollectedColumns(outputs.writer(CASES), as_columns, _CASES_AT_ONCE), Hashes(track)
        block: list[tuple[Case, str]] = []
        blocks = 0
        for block in _blocks(reading, inf if reading.has_overrides else ranges.HELD_TURNS):
            blocks += 1
            outputs.writer(TURNS).write(turn_columns(track, [case for case, _ in block]))
            rows.extend(block)
            for case, _ in block:
                hashes.add(case)
        rows.flush()
        reading.refuse_wrong()
        cases, contents = [case for case, _ in block], [content for _, content in block]
        overrides, scored = reading.overrides(cases, contents) if reading.has_overrides else ((), NOTHING_OVERRIDDEN)
        outputs.rows(GOLD_OVERRIDES).extend(override_rows(track, cases, overrides, scored))
        names = ("file", "line", "field", "message")
        problems = {name: [getattr(problem, name) for problem in reading.problems] for name in names}
        outputs.writer(CASE_PROBLEMS).write(problems)
        outputs.rows(LEFT_OUT_CASES).extend(asdict(case) for case in (*reading.left_out, *read_left_out(source.folder)))
        shown = shared if isinstance(track, Shares) and track.shows_shared else None
        editions = editions_of(source.require(), hashes, overrides, shown)
        outputs.writer(SUITE_EDITIONS).write({name: [value] for name, value in asdict(editions).items()})
    if blocks <= 1 and ranges.is_small(sum(len(case.turns) for case in cases)):
        outputs.keep((CASES,), tuple(cases))


def _blocks(reading: SuiteReading, most: float) -> Iterator[list[tuple[Case, str]]]:
    """Yields cases with their contents, in blocks of at most so many turns or of a single case."""
    block: list[tuple[Case, str]] = []
    turns = 0
    for case, content in reading:
        if block and turns + len(case.turns) > most:
            yield block
            block, turns = [], 0
        block.append((case, content))
        turns += len(case.turns)
    if block:
        yield block


def file_facts(inputs: Inputs) -> dict[str, object]:
    """Returns the number of files and their hash."""
    files = suite_files(inputs.workspace.suite(inputs.suite))
    return {"files": len(files), "content_hash": _loaded(inputs).content_hash}


def case_facts(inputs: Inputs) -> dict[str, object]:
    """Returns the numbers of cases and turns."""
    counted = {table.name: header.rows for table in (CASES, TURNS) if (header := inputs.header(table))}
    return dict(counted)


def _write_shared(outputs: Outputs, tables: Sequence[Table], rows: SharedRows) -> str:
    """Writes what the cases share; returns its hash, on which everything made from the cases depends too."""
    for table in tables:
        outputs.writer(table).write(rows[table.name])
    return json_hash([outputs.writer(table).content_hash() for table in tables])


def _pair_columns(
    pairs: Sequence[tuple[Case, str]], hash_of: Callable[[str], str], shared_hash: str | None
) -> dict[str, list[object]]:
    """Returns the columns of the table `cases`, from cases with their contents."""
    cases = [case for case, _ in pairs]
    return {
        "case_id": [case.id for case in cases],
        "cluster": [case.cluster for case in cases],
        "tags": [json_text(list(case.tags)) for case in cases],
        "features": [json_text(dict(case.features)) for case in cases],
        "turns": [len(case.turns) for case in cases],
        "source_file": [case.source_file for case in cases],
        "source_line": [case.source_line for case in cases],
        "source_hash": [hash_of(case.source_file) for case in cases],
        "content": [content for _, content in pairs],
        "shared_hash": [shared_hash for _ in cases],
    }


def turn_columns(track: Track, cases: Sequence[Case]) -> dict[str, list[object]]:
    """Returns the columns of the table `turns`; a turn with invalid gold has the reason."""
    problems = {turn.id: reason for case in cases for turn, reason in track.check_gold(case)}
    pairs = [(case, turn) for case in cases for turn in case.turns]
    results = [track.expected_result(turn) for _, turn in pairs]
    hashes = [track.gold_results(turn) for _, turn in pairs]
    return {
        "turn_id": [turn.id for _, turn in pairs],
        "case_id": [case.id for case, _ in pairs],
        "turn_index": [turn.index for _, turn in pairs],
        "question": [turn.question for _, turn in pairs],
        "expected": [track.expected_text(turn) for _, turn in pairs],
        "expected_printed": [track.expected_printed(turn) for _, turn in pairs],
        "gold": [json_text(track.gold_json(turn)) for _, turn in pairs],
        "expected_result": [None if found is None else json_text(found) for found in results],
        "complexity": [track.gold_complexity(turn) for _, turn in pairs],
        "gold_problem": [problems.get(turn.id) for _, turn in pairs],
        "gold_results": [json_text(list(found)) if any(found) else None for found in hashes],
    }


def override_rows(
    track: Track, cases: Sequence[Case], overrides: Sequence[Override], scored: ScoredGold
) -> list[dict[str, object]]:
    """Returns the rows of the table `gold_overrides`."""
    by_id = {case.id: case for case in cases}
    rows: list[dict[str, object]] = []
    for override in overrides:
        case = by_id[override.case_id]
        other = scored.alternatives.get(override.turn_id) or scored.case(case)
        turn, index = case.turns[override.turn_index], override.turn_index
        row: dict[str, object] = {"turn_id": turn.id, "case_id": case.id, "turn_index": index}
        row |= {"action": override.action, "who": override.who, "why": override.why}
        row |= {"published": track.expected_text(turn), "source_line": override.line}
        gold = override.gold
        row |= {"overridden": None if gold is None else track.expected_text(other.turns[index])}
        rows.append(row | {"gold": None if gold is None else json_text(dict(gold))})
    return rows


def _file_facts(name: str, path: Path) -> dict[str, object]:
    return {"file": name, "bytes": path.stat().st_size, "hash": file_hash(path)}
