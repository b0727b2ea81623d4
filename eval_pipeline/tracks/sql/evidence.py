"""Gathers evidence: the validator's findings on a query, and how its result compares with the accepted queries'."""

import atexit
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline.sandbox.sql import SqlError, SqlLimits, SqlRunner
from eval_pipeline.sql_equivalence import Equivalence, check
from eval_pipeline.sql_equivalence.results import ColumnMatch, Result, Rows, only_in_one, soft_f1
from eval_pipeline.tracks.capabilities import GOLD_RESULTS, NO_GOLD
from eval_pipeline.tracks.sql.artefact import SqlAnswer
from eval_pipeline.tracks.sql.cases.case_file import Context, Gold, SqlCase, SqlTurn
from eval_pipeline.tracks.sql.cases.source import Database
from eval_pipeline.tracks.sql.execute import SHOWN_ROWS, kept_rows, result_fingerprint, runnable, validated
from eval_pipeline.tracks.sql.metrics.defog_subset import asks_for_order
from eval_pipeline.tracks.sql.published import best_scores, published_scores, test_suite_score
from eval_pipeline.tracks.sql.words import SAME

VALIDATION, EXECUTION, EQUIVALENCE, PUBLISHED, EFFICIENCY, JUDGEMENT = (
    "validation",
    "execution",
    "equivalence",
    "published_scores",
    "efficiency",
    "judgement",
)
"""The kinds of evidence; the stage that asks the judge adds the judgement."""
TIMED_RUNS = 5
DECIDED = ("equivalent", "agreed", "different")
"""The verdicts on equivalence that leave nothing for a judge to decide."""
GOLD_RESULT = "gold_result"
_NO_DATA = "the suite ships no data for this database"


@dataclass(frozen=True, slots=True)
class Compared:
    """How a query compares with an accepted one.

    Attributes:
        execution: on the suite's database: `match`, `different`, `error` (the query does not run), `NO_GOLD` (the
            accepted one does not run) or `no_data`.
        soft_f1: F1 of the cells in both results; None if one is missing.
        details: details of the execution, for readers.
        ladder: the result of `equivalence.check`; None if that was not run.
        published: scores as other benchmarks count them, see `published.published_scores`; empty without two results.
    """

    accepted: str
    execution: str
    soft_f1: float | None
    details: Mapping[str, Json]
    ladder: Equivalence | None = None
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether the results agree on the suite's database and no generated database refutes the query."""
        verdict = self.ladder.verdict if self.ladder is not None else None
        if self.execution == "no_data":
            return verdict in SAME
        return self.execution == "match" and verdict != "different"

    @property
    def robust(self) -> bool:
        """Whether they agree there, and no generated database that fits the data refutes the query."""
        refuted_elsewhere = self.ladder is not None and self.ladder.evidence.get("fits_data") is False
        return self.right or (self.execution == "match" and refuted_elsewhere)


@lru_cache(maxsize=1)
def runner() -> SqlRunner:
    """Returns the runner whose child processes compare queries; they are kept until this process ends."""
    found = SqlRunner(SqlLimits())
    atexit.register(found.close)
    return found


def gather(case: SqlCase, turn: SqlTurn, final: Attempt[SqlAnswer]) -> tuple[Evidence, ...]:
    """Returns the available evidence on a turn's final attempt; none if there is no SQL."""
    query, gold = final.artefact, turn.gold
    if query is None or query.sql is None:
        return ()
    return tuple(
        Evidence(turn.id, final.sample, kind, verdict, value, details)
        for kind, verdict, value, details in _found(
            case.context, gold, query.sql, final, asks_for_order(turn.question, case.tags)
        )
    )


_Found = tuple[str, str, float | None, Mapping[str, Json]]


def _found(context: Context, gold: Gold, sql: str, final: Attempt[SqlAnswer], asks_order: bool) -> Iterator[_Found]:
    yield _validation(sql, context.database)
    if not gold.accepted:
        return
    if not isinstance(final.outcome, Ran):
        message = final.outcome.message if isinstance(final.outcome, Failed) else "the call gave no response"
        yield EXECUTION, "error", None, {"accepted": gold.accepted[0], "message": message}
        yield EQUIVALENCE, "undecided", None, {"rung": "undecided", "message": message}
        return
    best = compare(gold, sql, asks_order)
    yield EXECUTION, best.execution, best.soft_f1, {"accepted": best.accepted, **best.details}
    if (ladder := best.ladder) is not None:
        told = ladder.evidence
        message = told.get("reason") or told.get("error") or ""
        yield EQUIVALENCE, ladder.verdict, ladder.value, {"rung": ladder.rung, "message": message, **told}
    if best.published:
        yield PUBLISHED, "scored", None, best.published
    if best.execution == "match":
        yield from _efficiency(context.database, sql, best)


def _validation(sql: str, database: Database) -> _Found:
    found = validated(sql, database)
    verdict = "valid" if found.is_valid else "invalid" if found.safety_valid else "unsafe"
    errors: list[Json] = [{"category": error.category, "message": error.message} for error in found.errors]
    return VALIDATION, verdict, None, {"is_valid": found.is_valid, "safety_valid": found.safety_valid, "errors": errors}


def compare(gold: Gold, sql: str, asks_order: bool = False) -> Compared:
    """Compares a query that runs with the accepted query that it matches best.

    If one of these does not run, it is that one, as nobody knows whether the query agrees with it. Otherwise it is the
    first one by which it is right; otherwise one with the same result on the suite's database, or the one
    with the most cells in common. Each of the `published` scores is the best over all accepted queries.

    Args:
        gold: the accepted queries.
        sql: the query.
        asks_order: whether the question asks for an order of rows, as defog understands it.
    """
    compared = [executed(gold.database, sql, accepted, asks_order) for accepted in gold.accepted]
    if broken := next((found for found in compared if found.execution == NO_GOLD), None):
        return broken
    best, results = _best(compared, gold, sql), [found.details.get(GOLD_RESULT) for found in compared]
    details = {name: told for name, told in best.details.items() if name != GOLD_RESULT}
    details |= {GOLD_RESULTS: results} if any(results) else {}
    return replace(best, details=details, published=best_scores([found.published for found in compared]))


def _best(compared: Sequence[Compared], gold: Gold, sql: str) -> Compared:
    candidates = [found for found in compared if found.execution in ("match", "no_data")]
    if not candidates:
        candidates = [max(compared, key=lambda found: found.soft_f1 or 0.0)]
    climbed = []
    for found in candidates:
        climbed.append(_climbed(found, gold, sql))
        if climbed[-1].right:
            return climbed[-1]
    return max(climbed, key=lambda found: (found.robust, found.execution == "match", found.soft_f1 or 0.0))


def executed(database: Database, sql: str, accepted: str, asks_order: bool = False) -> Compared:
    """Compares the results of both on the suite's database as multisets of rows."""
    path = database.path()
    if path is None:
        return Compared(accepted, "no_data", None, {"message": _NO_DATA})
    mine, theirs = (runner().run_now(path, runnable(text, database), database.limits) for text in (sql, accepted))
    for whose, verdict, found in (("expected", NO_GOLD, theirs), ("generated", "error", mine)):
        if isinstance(found, Failed):
            return Compared(accepted, verdict, None, {"message": f"the {whose} query does not run: {found.message}"})
    assert not isinstance(mine, Failed) and not isinstance(theirs, Failed)
    try:
        same = ColumnMatch().agrees(Result(mine.columns, mine.rows), Result(theirs.columns, theirs.rows))
    except SqlError as error:
        return Compared(accepted, "error", None, {"message": error.message})
    details: dict[str, Json] = {"rows": len(mine.rows), "expected_rows": len(theirs.rows)}
    details[GOLD_RESULT] = result_fingerprint(theirs)
    if not same and len(mine.columns) == len(theirs.columns):
        details |= _differing(mine.rows, theirs.rows)
    score = 1.0 if same else soft_f1(mine.rows, theirs.rows)
    published = published_scores(mine, theirs, accepted, asks_order)
    if further := database.further():
        texts = runnable(sql, database), runnable(accepted, database)
        on_all = test_suite_score(further, *texts, runner().run_now) if published["spider_execution"] else 0.0
        published |= {} if on_all is None else {"test_suite": on_all}
    return Compared(accepted, "match" if same else "different", score, details, published=published)


def _differing(mine: Rows, theirs: Rows) -> dict[str, Json]:
    """Returns the first rows that only one of two long results has, with their positions.

    Short results are kept whole.
    """
    if max(len(mine), len(theirs)) <= SHOWN_ROWS:
        return {}
    extra, missing = only_in_one(mine, theirs)
    return {name: _kept(rows, places) for name, rows, places in (("extra", mine, extra), ("missing", theirs, missing))}


def _kept(rows: Rows, places: Sequence[int]) -> dict[str, Json]:
    first = list(places[:SHOWN_ROWS])
    return {"count": len(places), "places": first, "rows": kept_rows([rows[place] for place in first])}


def _climbed(found: Compared, gold: Gold, sql: str) -> Compared:
    """Adds the result of the equivalence check, which also considers the row order that the accepted query asks for."""
    path, options = gold.database.path(), gold.options
    ladder = check(
        gold.database.pinned(sql),
        gold.database.pinned(found.accepted),
        gold.database.schema,
        () if path is None else (path,),
        gold.database.dialect,
        options.samples,
        options.time_limit_s,
    )
    shipped = ladder.evidence.get("shipped") or [{}]
    if found.execution == "match" and shipped[0].get("same") is False:
        details = {**found.details, "message": "the same rows in another order than the accepted query asks for"}
        return replace(found, execution="different", details=details, ladder=ladder)
    return replace(found, ladder=ladder)


def _efficiency(database: Database, sql: str, best: Compared) -> Iterator[_Found]:
    """Yields the CPU times of both queries: the least of five alternating runs; equal texts get equal times.

    Nothing is known about the CPU time that a server spends on a query.
    """
    path = database.path()
    if path is None or database.server is not None:
        return
    texts = (runnable(sql, database), runnable(best.accepted, database))
    taken = runner().time_pair_now(path, *texts, TIMED_RUNS)
    if isinstance(taken, Failed):
        return
    mine, theirs = taken
    if best.ladder is not None and best.ladder.rung == "identical":
        mine = theirs = min(taken)
    details = {"generated_ms": mine * 1000, "expected_ms": theirs * 1000, "runs": TIMED_RUNS}
    yield EFFICIENCY, "timed", theirs / mine if mine > 0 else None, details


def of_kind(evidence: Sequence[Evidence], kind: str) -> Evidence | None:
    """Returns the evidence of a kind, or None if there is none."""
    return next((found for found in evidence if found.kind == kind), None)


def details_of(evidence: Sequence[Evidence], kind: str) -> Mapping[str, Any]:
    """Returns the details of the evidence of a kind; empty if there is none."""
    found = of_kind(evidence, kind)
    return {} if found is None else found.details
