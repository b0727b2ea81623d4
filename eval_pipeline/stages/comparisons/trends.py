"""`trends`: a model version of a suite night after night, and whether it has changed (spec/statistics.md)."""

from collections.abc import Iterator, Sequence
from typing import Any

from eval_pipeline.stages.comparisons.evaluations import Evaluated, Scored, TurnReader, latest, paired
from eval_pipeline.stages.comparisons.pairs import verdict_of
from eval_pipeline.stages.workspace import Workspace
from eval_pipeline.statistics import Corrected, PairedDifference, holm, paired_difference
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import COST_PER_CORRECT_ANSWER, STATISTICS

Row = dict[str, Any]
LOSS, GAIN, DRIFT_DOWN, DRIFT_UP, NO_CHANGE = "loss", "gain", "drift_down", "drift_up", "no_change"
START, BREAK = "start", "break"


def series_of(evaluations: Sequence[Evaluated]) -> list[Evaluated]:
    """The evaluations that belong together, by date: those of the scope of the latest one."""
    scope = latest(evaluations).scope
    return [found for found in evaluations if found.scope == scope]


def trend_rows(workspace: Workspace, series: Sequence[Evaluated], reader: TurnReader) -> Iterator[Row]:
    """A row a date of one model version, in their order."""
    before: Evaluated | None = None
    first: tuple[Evaluated, Scored] | None = None
    previous: tuple[Evaluated, Scored] | None = None
    for found in series:
        changed = found.changes(before) if before else []
        if changed:
            first = previous = None
        scored = reader.read(found)
        against = {"previous": previous, "first": first}
        row = _series_columns(workspace, found) | {"break_reason": ", ".join(changed) or None}
        yield row | _tests(scored, against, BREAK if changed else START)
        first, previous, before = first or (found, scored), (found, scored), found


def _tests(scored: Scored, against: dict[str, tuple[Evaluated, Scored] | None], without: str) -> Row:
    """What the tests against earlier dates say; `without` is the verdict where there is no earlier date."""
    tests: dict[str, PairedDifference] = {}
    dates = {}
    for name, earlier in against.items():
        if earlier is not None:
            both = paired(earlier[1], scored)
            tests[name] = paired_difference(both.first["correct"], both.second["correct"], both.clusters)
            dates[name] = earlier[0].partition.eval_date
    # On the second date of a series both are the same test, for which nothing has to be corrected.
    once = len(set(dates.values())) == 1
    corrections = holm([found.p_value for found in list(tests.values())[: 1 if once else 2]])
    corrected = dict(zip(tests, corrections * 2 if once else corrections, strict=False))
    row: Row = {}
    for name in against:
        row |= _against(name, dates.get(name), tests.get(name), corrected.get(name))
    reasons = dict.fromkeys(found.reason for found in tests.values() if found.reason)
    verdict = _verdict(row["previous_verdict"], row["first_verdict"]) if tests else without
    return row | {"verdict": verdict, "reason": "; ".join(filter(None, reasons)) or None}


def _verdict(previous: str | None, first: str | None) -> str | None:
    """One word for the two tests: what changed overnight goes before what changed slowly."""
    if previous in {LOSS, GAIN}:
        return previous
    if previous is None and first is None:
        return None
    return {LOSS: DRIFT_DOWN, GAIN: DRIFT_UP}.get(first or "", NO_CHANGE)


def _against(name: str, date: object, tested: PairedDifference | None, corrected: Corrected | None) -> Row:
    low, high = tested.interval(corrected.alpha) if tested and corrected else (None, None)
    return {
        f"{name}_date": date,
        f"{name}_n": tested.n if tested else None,
        f"{name}_difference": tested.difference if tested else None,
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_p_value": tested.p_value if tested else None,
        f"{name}_p_corrected": corrected.p_value if corrected else None,
        f"{name}_broken": tested.broken if tested else None,
        f"{name}_fixed": tested.fixed if tested else None,
        f"{name}_verdict": verdict_of(tested, corrected, LOSS, GAIN) if tested and corrected else None,
    }


def _series_columns(workspace: Workspace, found: Evaluated) -> Row:
    """What the aggregates of the date say."""
    record, key = workspace.record, RecordKey.of(found.partition)
    columns = ["metric", "split", "n", "clusters", "mean", "low", "high"]
    rows = record.read(STATISTICS, key, columns).to_pylist()
    correct = next(row for row in rows if (row["metric"], row["split"]) == ("correct", "all"))
    cost = record.read(COST_PER_CORRECT_ANSWER, key, ["tokens_total", "usd_total"]).to_pylist()[0]
    return {
        "model_version": found.partition.model_version,
        "eval_date": found.partition.eval_date,
        "simulated": found.simulated,
        "scope": found.scope,
        "n": correct["n"],
        "clusters": correct["clusters"],
        "accuracy": correct["mean"],
        "low": correct["low"],
        "high": correct["high"],
        **cost,
    }
