"""Gathers evidence: the validator's findings on a query, and how its result compares with the accepted queries'."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline.table_comparison.contracts import insisted_by
from eval_pipeline.table_comparison.graded import only_in_one, soft_f1
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.tracks.capabilities import GOLD_RESULTS, NO_GOLD
from eval_pipeline_plugins.sql_equivalence.ladder import Equivalence, check
from eval_pipeline_plugins.sql_equivalence.results import EQUAL, Result, Rows, compared
from eval_pipeline_plugins.tracks.sql import effects
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlCase, SqlContext, SqlGold, SqlTurn
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.cases.words import SAME
from eval_pipeline_plugins.tracks.sql.gold.lint import findings
from eval_pipeline_plugins.tracks.sql.metrics.published import asks_for_order
from eval_pipeline_plugins.tracks.sql.metrics.verdict import is_right
from eval_pipeline_plugins.tracks.sql.published import best_scores, published_scores, test_suite_score
from eval_pipeline_plugins.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline_plugins.tracks.sql.responses.execute import validated
from eval_pipeline_plugins.tracks.sql.responses.running import (
    SHOWN_ROWS,
    kept_rows,
    result_fingerprint,
    runnable,
    runner,
)
from eval_pipeline_plugins.tracks.sql.responses.structure import parsed
from eval_pipeline_plugins.tracks.sql.validation.validator import Validation

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sql.effects.judging import JudgedEffects

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
_MOST_EXTRA = 2
"""So many columns more than asked for are overlooked, or as many as were asked for; who selects all has not chosen."""
_NO_DATA = "the suite ships no data for this database"


@dataclass(frozen=True, slots=True)
class Compared:
    """How a query compares with an accepted one.

    Attributes:
        execution: on the suite's database: `match`, `different`, `error` (the query does not run), `NO_GOLD` (the
            accepted one does not run) or `no_data`.
        soft_f1: F1 of the cells in both results; None if one is missing.
        details: details of the execution, for readers.
        needs: what has to be overlooked for the results on the suite's database to be equal: each of the smallest sets.
        insisted: what the question or the accepted query insists on.
        ladder: the result of `equivalence.check`; None if that was not run.
        published: scores as other benchmarks count them, see `published.published_scores`; empty without two results.
    """

    accepted: str
    execution: str
    soft_f1: float | None
    details: Mapping[str, Json]
    needs: tuple[Set, ...] = ()
    insisted: Set = frozenset()
    ladder: Equivalence | None = None
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def needed(self) -> tuple[Set, ...]:
        """As `needs`, but on the data and on every generated database that fits them; empty: it differs in meaning."""
        evidence = self.ladder.evidence if self.ladder is not None else {}
        if self.execution == "error" or evidence.get("overlooked", ()) is None:
            return ()
        if self.ladder is not None and self.ladder.verdict == "equivalent":
            return self.needs or (frozenset(),)
        found = frozenset(map(Relaxation, evidence.get("overlooked", ())))
        if not self.needs:
            return (found,) if "overlooked" in evidence else ()
        added = found - self.needs[0]
        return tuple(one | added for one in self.needs)

    def right(self, gold: SqlGold) -> bool:
        """Returns whether it is right by the suite's contract and headline."""
        verdict = self.ladder.verdict if self.ladder is not None else None
        return is_right(
            gold.options.headline,
            gold.contract.overlooked(self.insisted),
            None if self.execution == "no_data" else self.needs,
            self.needed,
            verdict,
        )


def compared_with_gold(case: SqlCase, turn: SqlTurn, final: Attempt[SqlAnswer]) -> tuple[Evidence, ...]:
    """Returns the available evidence on a turn's final attempt, without times; none if there is no SQL."""
    query, gold = final.artefact, turn.gold
    if query is None or query.sql is None:
        return ()
    return tuple(
        Evidence(turn.id, final.sample, kind, verdict, value, details)
        for kind, verdict, value, details in _found(case.context, gold, query.sql, final, turn.question, case.tags)
    )


_Found = tuple[str, str, float | None, Mapping[str, Json]]


def _found(
    context: SqlContext, gold: SqlGold, sql: str, final: Attempt[SqlAnswer], question: str, tags: Sequence[str]
) -> Iterator[_Found]:
    if gold.may_change:
        yield from _evidence_on(
            gold, effects.judge(gold, sql, final.outcome if isinstance(final.outcome, Failed) else None)
        )
        return
    yield validation_evidence(validated(sql, context.database))
    if not gold.accepted:
        return
    if not isinstance(final.outcome, Ran):
        message = final.outcome.message if isinstance(final.outcome, Failed) else "the call gave no response"
        yield EXECUTION, "error", None, {"accepted": gold.accepted[0], "message": message}
        yield EQUIVALENCE, "undecided", None, {"rung": "undecided", "message": message}
        return
    best = compare(gold, sql, question, asks_for_order(question, tags))
    if not best.right(gold) and (why := _agrees_with_mended(gold, sql, best, tags)):
        yield EXECUTION, NO_GOLD, None, {"accepted": best.accepted, "message": why}
        return
    facts = {"needs": [sorted(one) for one in best.needs], "insisted": sorted(best.insisted)}
    yield EXECUTION, best.execution, best.soft_f1, {"accepted": best.accepted, **facts, **best.details}
    if (ladder := best.ladder) is not None:
        told = ladder.evidence
        message = told.get("reason") or told.get("error") or ""
        details = {"rung": ladder.rung, "message": message, **told, "needed": [sorted(one) for one in best.needed]}
        yield EQUIVALENCE, ladder.verdict, ladder.value, details
    if best.published:
        yield PUBLISHED, "scored", None, best.published


def validation_evidence(found: Validation) -> _Found:
    """Returns the evidence that says what the validator found."""
    verdict = "valid" if found.is_valid else "invalid" if found.safety_valid else "unsafe"
    errors: list[Json] = [{"category": error.category, "message": error.message} for error in found.errors]
    return VALIDATION, verdict, None, {"is_valid": found.is_valid, "safety_valid": found.safety_valid, "errors": errors}


def _evidence_on(gold: SqlGold, judged: "JudgedEffects") -> Iterator[_Found]:
    """Yields the evidence on a script: what the validator says, and how the states compare."""
    yield validation_evidence(judged.validation)
    details: dict[str, Json] = {"accepted": judged.accepted, "message": judged.message}
    if judged.verdict in ("match", "different"):
        details["needs"] = [[]] if judged.verdict == "match" else []
        details |= {"rows": len(judged.rows), "expected_rows": len(judged.expected_rows)}
        details |= {GOLD_RESULTS: [effects.gold_fingerprint(sql, gold) for sql in gold.accepted]}
    if judged.verdict == "different":
        details |= {"outside": list(judged.outside)} | differing_rows(judged.rows, judged.expected_rows)
    yield EXECUTION, judged.verdict, judged.soft_f1, details


def compare(gold: SqlGold, sql: str, question: str = "", asks_order: bool = False) -> Compared:
    """Compares a query that runs with the accepted query that it matches best.

    If one of these does not run, it is that one, as nobody knows whether the query agrees with it. Otherwise it is the
    first one by which it is right, or else the one from whose result on the data it differs least. Each of the
    `published` scores is the best over all accepted queries.

    Args:
        gold: the accepted queries.
        sql: the query.
        question: what was asked, which may insist on an order or on decimals.
        asks_order: whether the question asks for an order of rows, as defog understands it.
    """
    found = [executed(gold.database, sql, accepted, question, asks_order) for accepted in gold.accepted]
    if broken := next((one for one in found if one.execution == NO_GOLD), None):
        return broken
    best, results = _best(found, gold, sql), [one.details.get(GOLD_RESULT) for one in found]
    details = {name: told for name, told in best.details.items() if name != GOLD_RESULT}
    details |= {GOLD_RESULTS: results} if any(results) else {}
    return replace(best, details=details, published=best_scores([one.published for one in found]))


def _best(compared: Sequence[Compared], gold: SqlGold, sql: str) -> Compared:
    candidates = [found for found in compared if found.needs or found.execution == "no_data"]
    if not candidates:
        candidates = [max(compared, key=lambda found: found.soft_f1 or 0.0)]
    climbed = []
    for found in candidates:
        climbed.append(_climbed(found, gold, sql))
        if climbed[-1].right(gold):
            return climbed[-1]
    return max(climbed, key=lambda one: (bool(one.needed), one.execution == "match", one.soft_f1 or 0.0))


def executed(database: Database, sql: str, accepted: str, question: str = "", asks_order: bool = False) -> Compared:
    """Compares the results of both on the suite's database, whatever the order of rows."""
    path = database.path()
    if path is None:
        return Compared(
            accepted, "no_data", None, {"message": _NO_DATA}, insisted=_insisted(question, accepted, database)
        )
    mine, theirs = (runner().run_now(path, runnable(text, database), database.limits) for text in (sql, accepted))
    for whose, verdict, found in (("expected", NO_GOLD, theirs), ("generated", "error", mine)):
        if isinstance(found, Failed):
            return Compared(accepted, verdict, None, {"message": f"the {whose} query does not run: {found.message}"})
    assert not isinstance(mine, Failed) and not isinstance(theirs, Failed)
    comparison = compared(Result(mine.columns, mine.rows), Result(theirs.columns, theirs.rows))
    same = comparison.accepted(EQUAL)
    details: dict[str, Json] = {"rows": len(mine.rows), "expected_rows": len(theirs.rows)}
    details[GOLD_RESULT] = result_fingerprint(theirs)
    if not same:
        details["message"] = comparison.sentence()
        if len(mine.columns) == len(theirs.columns):
            details |= differing_rows(mine.rows, theirs.rows)
    score = 1.0 if same else soft_f1(mine.rows, theirs.rows)
    published = published_scores(mine, theirs, accepted, asks_order)
    if further := database.further():
        texts = runnable(sql, database), runnable(accepted, database)
        on_all = test_suite_score(further, *texts, runner().run_now) if published["spider_execution"] else 0.0
        published |= {} if on_all is None else {"test_suite": on_all}
    insisted = _insisted(question, accepted, database) | _all_selected(len(mine.columns), len(theirs.columns))
    verdict = "match" if same else "different"
    return Compared(accepted, verdict, score, details, comparison.needs, insisted, published=published)


def _insisted(question: str, accepted: str, database: Database) -> Set:
    """Returns what the question insists on; an accepted query with ORDER BY but no LIMIT insists on the order, too."""
    tree = parsed(accepted, database.dialect)
    ordered = tree is not None and tree.args.get("order") is not None and tree.args.get("limit") is None
    return insisted_by(question) | ({Relaxation.ROW_ORDER} if ordered else set())


def _all_selected(generated: int, expected: int) -> Set:
    """Returns that extra columns are not overlooked, if there are too many of them."""
    return frozenset({Relaxation.EXTRA_COLUMNS} if generated - expected > max(_MOST_EXTRA, expected) else ())


def differing_rows(mine: Rows, theirs: Rows) -> dict[str, Json]:
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


def _agrees_with_mended(gold: SqlGold, sql: str, best: Compared, tags: Sequence[str]) -> str:
    """Returns why a wrong answer may be right: it agrees with an accepted query mended where the lint doubts it."""
    path, database = gold.database.path(), gold.database
    doubts = [one for one in findings(best.accepted, database) if one.mended and one.kind not in tags] if path else []
    mine = runner().run_now(path, runnable(sql, database), database.limits) if path and doubts else None
    if path is None or mine is None or isinstance(mine, Failed):
        return ""
    for doubt in doubts:
        for text in doubt.mended:
            other = runner().run_now(path, text, database.limits)
            if isinstance(other, Failed):
                continue
            found = compared(Result(mine.columns, mine.rows), Result(other.columns, other.rows))
            if found.accepted(gold.contract.overlooked(best.insisted)):
                return f"the answer agrees with this accepted query if that is mended: {doubt.kind}, {doubt.words}"
    return ""


def _climbed(found: Compared, gold: SqlGold, sql: str) -> Compared:
    """Adds the result of the equivalence check, which also considers the row order that the accepted query asks for.

    It also sees where a LIMIT cuts through tied rows, of which either may be taken.
    """
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
    if path is None and (example := ladder.evidence.get("counterexample")) is not None:
        widths = (len(example[whose]["columns"]) for whose in ("generated", "expected"))
        found = replace(found, insisted=found.insisted | _all_selected(*widths))
    shipped = (ladder.evidence.get("shipped") or [{}])[0]
    if shipped.get("needs") is None:
        return replace(found, ladder=ladder)
    needs = tuple(frozenset(map(Relaxation, one)) for one in shipped["needs"])
    found = replace(found, needs=needs, ladder=ladder)
    if any(one <= EQUAL for one in needs):
        return replace(found, execution="match")
    if found.execution == "different":
        return found
    told = (
        "the same rows in another order than the accepted query asks for" if needs else "another result when run again"
    )
    details = {**found.details, "message": told}
    return replace(found, execution="different", details=details)


def efficiency(turn: SqlTurn, final: Attempt[SqlAnswer], compared: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Returns the CPU times of a right query and the accepted one: the least of five alternating runs.

    Equal texts get equal times, the least of the runs of both. Nothing is known about the CPU time that a server spends
    on a query.
    """
    gold, query, told = turn.gold, final.artefact, details_of(compared, EXECUTION)
    needs = [frozenset(map(Relaxation, one)) for one in told.get("needs", ())]
    may_overlook = gold.contract.overlooked(frozenset(map(Relaxation, told.get("insisted", ()))))
    if gold.may_change or query is None or query.sql is None or not any(one <= may_overlook for one in needs):
        return ()
    database, path = gold.database, gold.database.path()
    if path is None or database.server is not None:
        return ()
    texts = (runnable(query.sql, database), runnable(told["accepted"], database))
    is_same = details_of(compared, EQUIVALENCE).get("rung") == "identical"
    runs = (TIMED_RUNS + 1) // 2 if is_same else TIMED_RUNS
    taken = runner().time_pair_now(path, *texts, runs)
    if isinstance(taken, Failed):
        return ()
    mine, theirs = (min(taken), min(taken)) if is_same else taken
    details = {"generated_ms": mine * 1000, "expected_ms": theirs * 1000, "runs": 2 * runs if is_same else runs}
    return (Evidence(turn.id, final.sample, EFFICIENCY, "timed", theirs / mine if mine > 0 else None, details),)


def contract_values(gold: SqlGold, evidence: Sequence[Evidence]) -> dict[str, Any]:
    """Returns what the contract overlooks in a turn, and what its answer needs, as inputs of metrics."""
    execution, ladder = of_kind(evidence, EXECUTION), of_kind(evidence, EQUIVALENCE)
    details = execution.details if execution is not None else {}
    insisted = frozenset(map(Relaxation, details.get("insisted", ())))
    no_data = execution is not None and execution.verdict == "no_data"
    needs = details.get("needs", [[]] if execution is not None and execution.verdict == "match" else [])
    return {
        "insisted_on": sorted(insisted),
        "may_overlook": sorted(gold.contract.overlooked(insisted)),
        "needed_on_data": None if no_data else needs,
        "needed": needs if gold.may_change else _needed(ladder, needs, no_data=no_data),
    }


def _needed(ladder: Evidence | None, needs: Json, *, no_data: bool) -> Json:
    """Returns `Compared.needed` as it is on record; evidence from before contracts says whether results are equal."""
    if ladder is None or "needed" in ladder.details:
        return [] if ladder is None else ladder.details["needed"]
    if no_data:
        return [[]] if ladder.verdict in SAME else []
    return [] if ladder.verdict == "different" and ladder.details.get("fits_data") is not False else needs


def of_kind(evidence: Sequence[Evidence], kind: str) -> Evidence | None:
    """Returns the evidence of a kind, or None if there is none."""
    return next((found for found in evidence if found.kind == kind), None)


def details_of(evidence: Sequence[Evidence], kind: str) -> Mapping[str, Any]:
    """Returns the details of the evidence of a kind; empty if there is none."""
    found = of_kind(evidence, kind)
    return {} if found is None else found.details
