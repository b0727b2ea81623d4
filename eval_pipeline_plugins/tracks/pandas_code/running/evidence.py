"""Gathers evidence: how the last result compares with the expected one, what the code costs, and linter findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from eval_pipeline.core.model import Attempt, Evidence, Json, Ran
from eval_pipeline.sandbox.python_sandbox import Assertions
from eval_pipeline.sandbox.returned.outcomes import Measurement, SnippetFailed
from eval_pipeline.sandbox.returned.outcomes import SnippetRan as SnippetRan
from eval_pipeline.table_comparison.contracts import Contract, excess
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.tracks.capabilities import NO_GOLD
from eval_pipeline_plugins.tracks.pandas_code.analysis.quality import QualityFinding, quality_findings
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasCase, PandasContext, PandasGold, PandasTurn
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import given_answers, right_answers
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import answer_code, is_polars
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.failures.finding import failure_of
from eval_pipeline_plugins.tracks.pandas_code.failures.modes import Failure
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import compare
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import behaviour_of
from eval_pipeline_plugins.tracks.pandas_code.robust.explaining import explained
from eval_pipeline_plugins.tracks.pandas_code.robust.other_inputs import wrong_input
from eval_pipeline_plugins.tracks.pandas_code.running.execute import error_text, run_answer, whole_code
from eval_pipeline_plugins.tracks.pandas_code.running.performance import MIB, measure
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox, versions

RESULT, PERFORMANCE, QUALITY, VARIANTS, FAILURE = "result", "performance", "quality", "variants", "failure"
"""Kinds of evidence."""
MATCH, DIFFERENT, ERROR = "match", "different", "error"
"""Verdicts on a result, beside `NO_GOLD`: the reference code has none."""

_Found = tuple[str, str, float | None, Mapping[str, Json]]


def compare_all(turns: Sequence[tuple[PandasCase, PandasTurn, Attempt[Code]]]) -> Iterator[tuple[Evidence, ...]]:
    """Yields the available evidence on the final attempts of turns, without costs; none for a turn without code.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    codes = [final.artefact.code if final.artefact is not None else "" for _, _, final in turns]
    findings = quality_findings(codes, [_known_names(turn.gold.context) for _, turn, _ in turns])
    for (_, turn, final), found in zip(turns, findings, strict=True):
        yield tuple(
            Evidence(turn.id, final.sample, kind, verdict, value, details)
            for kind, verdict, value, details in _found(turn.gold, final, found)
        )


def _known_names(context: PandasContext) -> tuple[str, ...]:
    """Returns the names that answers may use: the tables, and in the dialect polars `pl` (`df` for a single table)."""
    names = tuple(context.paths)
    if not is_polars(context):
        return names
    return (*names, "pl", *(["df"] if len(names) == 1 else []))


def _found(gold: PandasGold, final: Attempt[Code], findings: Sequence[QualityFinding]) -> Iterator[_Found]:
    artefact = final.artefact
    if artefact is None:
        return
    if isinstance(final.outcome, Ran):
        verdict, score, details = judged(gold, artefact, final.outcome.value)
        layer = gold.context.layer
        if layer is not None and layer.version_of("pandas"):
            details["versions"] = {**versions(layer)}
        yield RESULT, verdict, score, details
        gold, is_meant = _by_meaning(gold, verdict, details)
        if verdict == DIFFERENT and (failure := failure_of_answer(gold, artefact, final.outcome.value, is_meant)):
            yield FAILURE, failure.mode, None, {"mode": failure.mode, "why": failure.why}
    else:
        yield RESULT, ERROR, 0.0, {"message": final.outcome.message if final.outcome is not None else ""}
    if artefact.answer is not None:
        return
    if isinstance(final.outcome, Ran) and gold.code is not None:
        yield from _on_variants(gold, artefact.code, final.outcome.value, right=is_meant)
    yield QUALITY, "findings" if findings else "clean", None, {"findings": [asdict(finding) for finding in findings]}


def judged(gold: PandasGold, artefact: Code, outcome: Json) -> tuple[str, float | None, dict[str, Json]]:
    """Returns verdict, correctness and details of code that ran, judged by the gold.

    Args:
        gold: gold of the turn.
        artefact: the code, or a recorded answer.
        outcome: the outcome from `execute.PandasExecutor`.
    """
    if gold.tests is not None:
        return _tested(gold, artefact)
    result = outcome["result"] if "result" in outcome else _whole_result(gold.context, artefact)
    if isinstance(result, SnippetFailed):
        return ERROR, 0.0, {"message": f"when it was run again: {error_text(result)}"}
    if gold.answers:
        return _answered(gold, result)
    expected = expected_result(gold)
    if isinstance(expected, SnippetFailed):
        return NO_GOLD, None, {"message": f"the reference code does not run: {error_text(expected)}"}
    found = compare(result, expected, ordered=gold.ordered, order_keys=gold.order_keys, form=gold.form)
    needs: Json = [sorted(map(str, one)) for one in found.needs]
    details: dict[str, Json] = {
        "precision": found.precision,
        "recall": found.recall,
        "message": found.why,
        "needs": needs,
    }
    return MATCH if found.equal else DIFFERENT, found.score, details


def _by_meaning(gold: PandasGold, verdict: str, details: Mapping[str, Json]) -> tuple[PandasGold, bool]:
    """Returns the gold by which understanding and coverage are judged, and whether the result is right by it.

    They are about meaning: a form that only the contract minds, or a name that the answer lacks, is overlooked.
    """
    ways = details.get("needs", [])
    lacking = excess(ways, gold.form.overlooked)
    if (
        verdict != DIFFERENT
        or not ways
        or not lacking <= Contract().overlooked(gold.insisted) | {Relaxation.GIVEN_NAMES}
    ):
        return gold, verdict == MATCH
    overlooked = Contract(overlook=tuple(Relaxation(one) for one in sorted(lacking)))
    return replace(gold, contract=gold.contract.with_case(overlooked)), True


def _answered(gold: PandasGold, result: Json) -> tuple[str, float, dict[str, Json]]:
    """Judges closed answers; the result is right if all of them are."""
    given = given_answers(result, gold.question)
    right = right_answers(given, gold.answers, gold.question)
    wrong = [name for name, found in right.items() if not found]
    details: dict[str, Json] = {"given": dict(given), "right": right, "share": 1 - len(wrong) / len(right)}
    return DIFFERENT if wrong else MATCH, float(not wrong), details | {"message": _wrong_text(wrong, given)}


def _wrong_text(wrong: Sequence[str], given: Mapping[str, str]) -> str:
    return "; ".join(f"{name} is {given[name]}" if name in given else f"{name} is missing" for name in wrong)


def _tested(gold: PandasGold, artefact: Code) -> tuple[str, float, dict[str, Json]]:
    """Runs assertions in a process that never ran the code."""
    code = whole_code(artefact.code, gold.context)
    found = sandbox(gold.context.layer).run(code, gold.context.paths, tests=tests_of(gold, artefact.code))
    if isinstance(found, SnippetRan):
        return MATCH, 1.0, {"message": ""}
    return DIFFERENT, 0.0, {"message": error_text(found)}


def tests_of(gold: PandasGold, code: str) -> Assertions | None:
    """Returns the tests that decide about some code; None if something else decides."""
    if gold.tests is None:
        return None
    if gold.context.template is None:
        return Assertions(gold.tests, gold.code or "")
    return Assertions(gold.tests, "", code)  # reference code that is a part of a program need not be a program itself


@lru_cache(maxsize=64)
def _run_again(code: str, context: PandasContext) -> Any:
    found = run_answer(code, context)
    return found if isinstance(found, SnippetFailed) else found.result


def _whole_result(context: PandasContext, artefact: Code) -> Json | SnippetFailed:
    """Runs code again to get a result that was too large for the record."""
    return _run_again(artefact.code, context)


def performance(turn: PandasTurn, final: Attempt[Code]) -> tuple[Evidence, ...]:
    """Returns what the code of an answer that ran costs beside the reference code; none without either.

    Where answers are not pandas, the reference code would be measured against another library.
    """
    gold, artefact = turn.gold, final.artefact
    context, ran = gold.context, isinstance(final.outcome, Ran)
    if artefact is None or artefact.answer is not None or not ran or gold.code is None or is_polars(context):
        return ()
    both = whole_code(artefact.code, context), whole_code(gold.code, context)
    found = measure(*both, context.paths, context.options.timed_runs, tests_of(gold, artefact.code), context.layer)
    if isinstance(found, SnippetFailed):
        return (Evidence(turn.id, final.sample, PERFORMANCE, "unmeasured", None, {"message": error_text(found)}),)
    costs = {**_told("generated", found.generated), **_told("reference", found.reference)}
    return (Evidence(turn.id, final.sample, PERFORMANCE, "measured", None, {**costs, "runs": found.generated.runs}),)


def failure_of_answer(gold: PandasGold, artefact: Code, outcome: Json, is_meant: bool = False) -> Failure | None:
    """Returns what went wrong in a wrong answer that ran; None if nothing shows it.

    Args:
        gold: the turn's gold.
        artefact: the answer.
        outcome: what it gives on the given tables.
        is_meant: whether that is wrong in form only.
    """
    result = None if gold.tests is not None else outcome.get("result")
    if result is None and gold.tests is None:
        result = _whole_result(gold.context, artefact)
    if isinstance(result, SnippetFailed):
        return None
    return failure_of(gold, artefact.code, result, lambda: _met(gold, artefact.code, outcome, right=is_meant))


def _met(gold: PandasGold, code: str, outcome: Json, *, right: bool) -> dict[str, Json] | None:
    """Returns what explains an answer on the given tables and their variants; None if there are none, or nothing is to.

    Args:
        gold: the turn's gold.
        code: the answer's code.
        outcome: what it gives on the given tables, from `execute.PandasExecutor`.
        right: whether that is the expected result.
    """
    if not (right or gold.context.options.mending_runs):
        return None
    found = behaviour_of(gold, answer_code(code, gold.context), outcome.get("result"))
    if found is None or not (all(found.right) or gold.context.options.mending_runs):
        return None
    told = asdict(explained(gold, code, outcome.get("result"), found, right=right))
    return {name: list(one) if isinstance(one, tuple) else one for name, one in told.items()}


def _on_variants(gold: PandasGold, code: str, outcome: Json, *, right: bool) -> Iterator[_Found]:
    """Yields the results of the code on variants of the tables, if there are any."""
    if gold.tests is not None:
        yield from _on_other_inputs(gold, code)
        return
    if not (right or gold.context.options.mending_runs):
        return  # the given tables decide, and nothing is to be explained
    found = behaviour_of(gold, answer_code(code, gold.context), outcome.get("result"))
    if found is None:
        return
    passed, count = sum(found.right), len(found.right)
    details: dict[str, Json] = {
        "variants": count,
        "right": passed,
        "met": _met(gold, code, outcome, right=right),
        "counterexample": found.counterexample,
    }
    yield VARIANTS, MATCH if passed == count else DIFFERENT, passed / count if count else 1.0, details


def _on_other_inputs(gold: PandasGold, code: str) -> Iterator[_Found]:
    """Yields whether a function is right on all other inputs than those of its tests, if there are any."""
    wrong = wrong_input(gold, code)
    if wrong is None:
        return
    shown = None
    if wrong:
        told = {name: wrong[name] for name in ("kind", "expected", "returned")}
        shown = {**told, "tables": {"input": wrong["input"]}}
    right = int(not wrong)
    details: dict[str, Json] = {"variants": 1, "right": right, "met": None, "counterexample": shown}
    yield VARIANTS, DIFFERENT if wrong else MATCH, float(right), details


def _told(name: str, cost: Measurement) -> dict[str, Json]:
    return {f"{name}_ms": cost.seconds * 1000, f"{name}_mib": cost.peak_bytes / MIB}


def of_kind(evidence: Sequence[Evidence], kind: str) -> Evidence | None:
    """Returns the evidence of a kind, or None if there is none."""
    return next((found for found in evidence if found.kind == kind), None)
