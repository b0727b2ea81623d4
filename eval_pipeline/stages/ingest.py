"""First stages: the suite's files as they came, and the cases in them."""

from collections.abc import Sequence
from pathlib import Path

from eval_pipeline.core.errors import Problem
from eval_pipeline.core.ids import file_hash, json_hash, json_text
from eval_pipeline.core.model import Case, Suite
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import CASE_PROBLEMS, CASES, SUITES, TURNS
from eval_pipeline.suites import SuiteCases, load_suite, read_suite, suite_files
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Shares, suite_tables_of
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "1"
_CASES_AT_ONCE = 250
"""Their documents are copied while they are written."""


def ingest_files(workspace: Workspace, suite: str) -> StageResult:
    """Hashes every file of a suite into the `suites` table.

    Raises:
        InputError: `suite.yaml` is wrong.
    """
    source = workspace.suite(suite)
    header = source.require()
    loaded = load_suite(source)
    key = RecordKey.of_suite(suite)
    made_from = {"files": loaded.content_hash, "stage": VERSION}
    files = suite_files(source)
    facts = {"files": len(files), "content_hash": loaded.content_hash}
    if not workspace.record.is_current(SUITES, key, made_from):
        # Counted by reading, so a suite with wrong cases has its files on record, but no counts.
        with workspace.record.writer(SUITES, key, made_from) as writer:
            writer.write(
                {
                    "track": [loaded.track],
                    "version": [loaded.version],
                    "description": [loaded.description],
                    "licence": [header.licence],
                    "content_hash": [loaded.content_hash],
                    "files": [json_text([_file_facts(name, path) for name, path in files])],
                    "options": [json_text(dict(loaded.options))],
                }
            )
    return StageResult(1, loaded.content_hash, False, facts)


def ingest_cases(workspace: Workspace, suite: str, progress: Progress = SILENT) -> StageResult:
    """Reads and validates the cases of a suite, and what they share, into `cases`, `turns` and the track's tables.

    Raises:
        InputError: with every problem in any file; where the track keeps the good cases, see `case_problems`.
    """
    source = workspace.suite(suite)
    track = source.track()
    loaded = load_suite(source)
    key = RecordKey.of_suite(suite)
    made_from = _made_from(track, loaded)
    record = workspace.record
    reused = cases_current(workspace, suite)
    if not reused:
        with busy(progress, f"{suite} · cases"):
            found = read_suite(source)
            cases = found.cases
            hashes = {name: file_hash(path) for name, path in _source_files(workspace, suite, cases)}
            with record.writer(TURNS, key, made_from) as writer:
                writer.write(turn_columns(track, cases))
            _write_problems(record, key, made_from, found)
            shared_hash = _write_shared(record, key, made_from, track, found)
            with record.writer(CASES, key, made_from) as writer:
                for start in range(0, len(cases), _CASES_AT_ONCE):
                    some = slice(start, start + _CASES_AT_ONCE)
                    writer.write(case_columns(cases[some], found.contents[some], hashes, shared_hash))
    header, turns = record.header(CASES, key), record.header(TURNS, key)
    assert header is not None and turns is not None
    if not reused:
        # The stages after this one, in the same process, need not read them again.
        workspace.remembered("cases", {suite: header.content_hash}, lambda: cases)
    return StageResult(header.rows, header.content_hash, reused, {"cases": header.rows, "turns": turns.rows})


def cases_current(workspace: Workspace, suite: str) -> bool:
    """Whether the record holds the cases as the suite's files have them now."""
    source = workspace.suite(suite)
    made_from, key = _made_from(source.track(), load_suite(source)), RecordKey.of_suite(suite)
    return all(workspace.record.is_current(table, key, made_from) for table in _tables(source.track()))


def case_problems(workspace: Workspace, suite: str) -> list[str]:
    """Why cases of the suite were left out, a sentence each with file and line."""
    rows = workspace.record.read(CASE_PROBLEMS, RecordKey.of_suite(suite)).to_pylist()
    return [str(Problem(row["file"], row["line"], row["field"], row["message"])) for row in rows]


def _tables(track: Track) -> tuple[Table, ...]:
    return (CASES, TURNS, CASE_PROBLEMS, *suite_tables_of(track))


def _write_problems(record: Record, key: RecordKey, made_from: dict[str, str], found: SuiteCases) -> None:
    with record.writer(CASE_PROBLEMS, key, made_from) as writer:
        names = ("file", "line", "field", "message")
        writer.write({name: [getattr(problem, name) for problem in found.problems] for name in names})


def _write_shared(
    record: Record, key: RecordKey, made_from: dict[str, str], track: Track, found: SuiteCases
) -> str | None:
    """Writes what the cases share; a hash of it, so that what is made from the cases follows it too."""
    hashes = []
    columns = track.shared_rows(found.shared) if isinstance(track, Shares) else {}
    for table in suite_tables_of(track):
        with record.writer(table, key, made_from) as writer:
            writer.write(columns[table.name])
        header = record.header(table, key)
        assert header is not None
        hashes.append(header.content_hash)
    return json_hash(hashes) if hashes else None


def _made_from(track: Track, loaded: Suite) -> dict[str, str]:
    # The executor's too: `turns.gold_problem` is what executing the gold gave.
    versions = {"parser": track.versions["cases"], "executor": track.versions["executor"]}
    return {"files": loaded.content_hash, **versions, "stage": VERSION}


def case_columns(
    cases: Sequence[Case], contents: Sequence[str], hashes: dict[str, str], shared_hash: str | None
) -> dict[str, list[object]]:
    """Columns of the `cases` table."""
    return {
        "case_id": [case.id for case in cases],
        "cluster": [case.cluster for case in cases],
        "tags": [json_text(list(case.tags)) for case in cases],
        "features": [json_text(dict(case.features)) for case in cases],
        "turns": [len(case.turns) for case in cases],
        "source_file": [case.source_file for case in cases],
        "source_line": [case.source_line for case in cases],
        "source_hash": [hashes.get(case.source_file) for case in cases],
        "content": list(contents),
        "shared_hash": [shared_hash for _ in cases],
    }


def turn_columns(track: Track, cases: Sequence[Case]) -> dict[str, list[object]]:
    """Columns of the `turns` table; a turn whose own gold does not hold carries the reason."""
    problems = {turn.id: reason for case in cases for turn, reason in track.check_gold(case)}
    pairs = [(case, turn) for case in cases for turn in case.turns]
    return {
        "turn_id": [turn.id for _, turn in pairs],
        "case_id": [case.id for case, _ in pairs],
        "turn_index": [turn.index for _, turn in pairs],
        "question": [turn.question for _, turn in pairs],
        "expected": [track.expected_text(turn) for _, turn in pairs],
        "expected_printed": [track.expected_printed(turn) for _, turn in pairs],
        "gold": [json_text(track.gold_json(turn)) for _, turn in pairs],
        "complexity": [track.gold_complexity(turn) for _, turn in pairs],
        "gold_problem": [problems.get(turn.id) for _, turn in pairs],
    }


def _file_facts(name: str, path: Path) -> dict[str, object]:
    return {"file": name, "bytes": path.stat().st_size, "hash": file_hash(path)}


def _source_files(workspace: Workspace, suite: str, cases: Sequence[Case]) -> list[tuple[str, Path]]:
    folder = workspace.suite(suite).folder.parent
    return [(name, folder / name) for name in sorted({case.source_file for case in cases})]
