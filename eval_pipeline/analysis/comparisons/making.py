"""Making and publishing `model_comparisons` and `trends`, each where it is not current."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf

from eval_pipeline.analysis.comparisons.evaluations import Evaluated, TurnReader, evaluations_of, latest
from eval_pipeline.analysis.comparisons.pairs import Row, comparison_rows, every_pair
from eval_pipeline.analysis.comparisons.trends import series_of, trend_rows
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.stages.publishing import publish_suite
from eval_pipeline.store.durable import locked
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import MODEL_COMPARISONS, TRENDS
from eval_pipeline.workspace.columns import Columns, by_name
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace

VERSION = "1"
Evaluations = Mapping[str, Sequence[Evaluated]]


def compare_models(workspace: Workspace, suite: str, progress: Progress = SILENT) -> StageResult:
    """Makes `model_comparisons` of a suite where it is not current."""
    with busy(progress, f"{suite} · comparing models"):
        result = _make(workspace, suite, MODEL_COMPARISONS, _comparisons)
    rows = workspace.record.read(MODEL_COMPARISONS, RecordKey.of_suite(suite), ["verdict"])["verdict"].to_pylist()
    different = sum(verdict not in {None, "not_significant"} for verdict in rows)
    return _with_facts(result, {"pairs": len(rows), "significantly_different": different})


def make_trends(workspace: Workspace, suite: str, progress: Progress = SILENT) -> StageResult:
    """Makes `trends` of a suite where it is not current; series that have not changed are taken over."""
    with busy(progress, f"{suite} · trends"):
        result = _make(workspace, suite, TRENDS, _trends)
    rows = newest_trends(workspace, suite)
    facts: dict[str, Json] = {"model_versions": len(rows)}
    facts |= {f"accuracy_{row['model_version']}": row["accuracy"] for row in rows}
    return _with_facts(result, facts)


def newest_trends(workspace: Workspace, suite: str) -> list[Row]:
    """The newest row of each model version in `trends`."""
    rows = workspace.record.read(TRENDS, RecordKey.of_suite(suite)).to_pylist()
    return list({row["model_version"]: row for row in sorted(rows, key=lambda row: row["eval_date"])}.values())


def publish_comparisons(workspace: Workspace, suite: str, progress: Progress = SILENT) -> StageResult:
    """Publishes what the store lacks of the suite's comparisons and trends."""
    with busy(progress, f"{suite} · publishing"):
        published = publish_suite(workspace, suite)
    headers = [workspace.record.header(table, RecordKey.of_suite(suite)) for table in (MODEL_COMPARISONS, TRENDS)]
    hashes = [header.content_hash for header in headers if header]
    rows = sum(header.rows for header in headers if header)
    return StageResult(rows, json_hash(hashes), False, {"partitions_replaced": published.partitions_replaced})


def keep_comparisons(workspace: Workspace, suite: str, progress: Progress = SILENT) -> None:
    """Makes sure that record and store hold the suite's comparisons and trends."""
    compare_models(workspace, suite, progress)
    make_trends(workspace, suite, progress)
    publish_comparisons(workspace, suite, progress)


def comparisons_current(workspace: Workspace, suite: str) -> bool:
    """Whether the record holds the comparisons and trends as they would be made now."""
    try:
        evaluations = evaluations_of(workspace, suite)
        return all(
            workspace.record.is_current(table, RecordKey.of_suite(suite), made_from(evaluations))
            for table, made_from in ((MODEL_COMPARISONS, _of_latest), (TRENDS, _of_series))
        )
    except EvalError:
        return False  # making them says what is wrong


def _comparisons(workspace: Workspace, suite: str, evaluations: Evaluations) -> tuple[dict[str, str], "_Rows"]:
    chosen = [latest(evaluations[name]) for name in sorted(evaluations)]
    return _of_latest(evaluations), lambda: comparison_rows(every_pair(chosen), TurnReader(workspace))


def _of_latest(evaluations: Evaluations) -> dict[str, str]:
    fingerprints = [latest(evaluations[name]).fingerprint() for name in sorted(evaluations)]
    return {"evaluations": json_hash(fingerprints), "stage": VERSION}


def _trends(workspace: Workspace, suite: str, evaluations: Evaluations) -> tuple[dict[str, str], "_Rows"]:
    made_from = _of_series(evaluations)

    def rows() -> Iterator[Row]:
        before, kept = _kept(workspace, suite)
        reader = TurnReader(workspace)
        for name in sorted(evaluations):
            source = _source(name)
            if before.get("stage") == VERSION and before.get(source) == made_from[source]:
                yield from kept[name]
            else:
                yield from trend_rows(workspace, series_of(evaluations[name]), reader)

    return made_from, rows


def _of_series(evaluations: Evaluations) -> dict[str, str]:
    """A hash for each model version: a night adds to some of many long series."""
    hashes = {
        _source(name): json_hash([found.fingerprint() for found in series_of(series)])
        for name, series in evaluations.items()
    }
    return hashes | {"stage": VERSION}


def _source(model_version: str) -> str:
    return f"series of {model_version}"


def _kept(workspace: Workspace, suite: str) -> tuple[Mapping[str, str], dict[str, list[Row]]]:
    """What `trends` was made from, and its rows by model version; nothing where there is none of today's schema."""
    key = RecordKey.of_suite(suite)
    header = workspace.record.header(TRENDS, key)
    if header is None or header.schema_hash != TRENDS.schema_hash():
        return {}, {}
    rows: dict[str, list[Row]] = {}
    for row in workspace.record.read(TRENDS, key, [column.name for column in TRENDS.columns]).to_pylist():
        rows.setdefault(row["model_version"], []).append(row)
    return header.made_from, rows


_Rows = Callable[[], Sequence[Row] | Iterator[Row]]
_Made = Callable[[Workspace, str, Evaluations], tuple[dict[str, str], _Rows]]


def _make(workspace: Workspace, suite: str, table: Table, of: _Made) -> StageResult:
    """Writes a table of a suite where it is not current."""
    record, key = workspace.record, RecordKey.of_suite(suite)
    with _in_turn(workspace, suite):
        made_from, rows = of(workspace, suite, evaluations_of(workspace, suite))
        reused = record.is_current(table, key, made_from)
        if not reused:
            found = list(rows())
            with record.writer(table, key, made_from) as writer:
                columns = Columns(writer, by_name)
                columns.extend(found)
                columns.flush()
    header = record.header(table, key)
    assert header is not None
    return StageResult(header.rows, header.content_hash, reused)


@contextmanager
def _in_turn(workspace: Workspace, suite: str) -> Iterator[None]:
    """One process at a time: else one that looked at the record earlier could have the last word."""
    folders = RecordKey.of_suite(suite).folders(TRENDS)
    with locked(workspace.home.root.joinpath("locks", *folders, "comparisons.lock"), inf):
        yield


def _with_facts(result: StageResult, facts: Mapping[str, Json]) -> StageResult:
    return StageResult(result.rows, result.content_hash, result.reused, facts)
