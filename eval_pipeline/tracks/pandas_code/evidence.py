"""Evidence: how a turn's last result compares with the expected one, what its code costs, what a linter finds in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from eval_pipeline.core.model import Attempt, Evidence, Json, Ran
from eval_pipeline.sandbox import Measurement, SnippetFailed
from eval_pipeline.sandbox import SnippetRan as SnippetRan
from eval_pipeline.tracks.pandas_code.analysis.quality import QualityFinding, quality_findings
from eval_pipeline.tracks.pandas_code.artefact import Code
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasCase, PandasContext, PandasGold, PandasTurn
from eval_pipeline.tracks.pandas_code.cases.closed_answers import given_answers, right_answers
from eval_pipeline.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline.tracks.pandas_code.execute import error_text, runnable
from eval_pipeline.tracks.pandas_code.performance import MIB, measure
from eval_pipeline.tracks.pandas_code.results.comparison import compare
from eval_pipeline.tracks.pandas_code.runner import sandbox

RESULT, PERFORMANCE, QUALITY = "result", "performance", "quality"
"""Kinds of evidence."""
MATCH, DIFFERENT, ERROR, NO_GOLD = "match", "different", "error", "no_gold"
"""Verdicts on a result; `no_gold`: the reference code gives none."""

_Found = tuple[str, str, float | None, Mapping[str, Json]]


def gather_all(turns: Sequence[tuple[PandasCase, PandasTurn, Attempt[Code]]]) -> list[tuple[Evidence, ...]]:
    """Evidence on the final attempts of turns, of the kinds that there are; none where there is no code.

    Raises:
        NoSandboxError: nothing here can run code.
    """
    codes = [final.artefact.code if final.artefact is not None else "" for _, _, final in turns]
    findings = quality_findings(codes, [tuple(turn.gold.context.paths) for _, turn, _ in turns])
    return [
        tuple(
            Evidence(turn.id, final.sample, kind, verdict, value, details)
            for kind, verdict, value, details in _found(turn.gold, final, found)
        )
        for (_, turn, final), found in zip(turns, findings, strict=True)
    ]


def _found(gold: PandasGold, final: Attempt[Code], findings: Sequence[QualityFinding]) -> Iterator[_Found]:
    artefact = final.artefact
    if artefact is None:
        return
    ran = isinstance(final.outcome, Ran)
    if isinstance(final.outcome, Ran):
        verdict, score, details = judged(gold, artefact, final.outcome.value)
        yield RESULT, verdict, score, details
    else:
        yield RESULT, ERROR, 0.0, {"message": final.outcome.message if final.outcome is not None else ""}
    if artefact.answer is not None:
        return
    if ran and gold.code is not None:
        yield from _performance(gold, artefact.code)
    yield QUALITY, "findings" if findings else "clean", None, {"findings": [asdict(finding) for finding in findings]}


def judged(gold: PandasGold, artefact: Code, outcome: Json) -> tuple[str, float | None, dict[str, Json]]:
    """Verdict, correctness and details of code that ran, by what the gold says is right.

    Args:
        gold: of the turn.
        artefact: the code, or a recorded answer.
        outcome: what `execute.PandasExecutor` made of it.
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
    found = compare(result, expected, ordered=gold.ordered, order_keys=gold.order_keys)
    details: dict[str, Json] = {"precision": found.precision, "recall": found.recall, "message": found.why}
    return MATCH if found.equal else DIFFERENT, found.score, details


def _answered(gold: PandasGold, result: Json) -> tuple[str, float, dict[str, Json]]:
    """Closed answers: right where all are."""
    given = given_answers(result)
    right = right_answers(given, gold.answers, gold.question)
    wrong = [name for name, found in right.items() if not found]
    details: dict[str, Json] = {"given": dict(given), "right": right, "share": 1 - len(wrong) / len(right)}
    return DIFFERENT if wrong else MATCH, float(not wrong), details | {"message": _wrong_text(wrong, given)}


def _wrong_text(wrong: Sequence[str], given: Mapping[str, str]) -> str:
    return "; ".join(f"{name} is {given[name]}" if name in given else f"{name} is missing" for name in wrong)


def _tested(gold: PandasGold, artefact: Code) -> tuple[str, float, dict[str, Json]]:
    """Tests that follow the code."""
    assert gold.tests is not None
    found = sandbox().run(_with_tests(artefact.code, gold.tests), gold.context.paths)
    if isinstance(found, SnippetRan):
        return MATCH, 1.0, {"message": ""}
    return DIFFERENT, 0.0, {"message": error_text(found)}


def _with_tests(code: str, tests: str) -> str:
    return f"{code}\n{tests}\nresult = True"


@lru_cache(maxsize=64)
def _run_again(code: str, context: PandasContext) -> Any:
    found = sandbox().run(runnable(code, context), context.paths)
    return found if isinstance(found, SnippetFailed) else found.result


def _whole_result(context: PandasContext, artefact: Code) -> Json | SnippetFailed:
    """A result that was too large for the record."""
    return _run_again(artefact.code, context)


def _performance(gold: PandasGold, code: str) -> Iterator[_Found]:
    assert gold.code is not None
    generated, reference = (text if gold.tests is None else _with_tests(text, gold.tests) for text in (code, gold.code))
    found = measure(generated, reference, gold.context.paths, gold.context.options.timed_runs)
    if isinstance(found, SnippetFailed):
        yield PERFORMANCE, "unmeasured", None, {"message": error_text(found)}
        return
    costs = {**_told("generated", found.generated), **_told("reference", found.reference)}
    yield PERFORMANCE, "measured", None, {**costs, "runs": found.generated.runs}


def _told(name: str, cost: Measurement) -> dict[str, Json]:
    return {f"{name}_ms": cost.seconds * 1000, f"{name}_mib": cost.peak_bytes / MIB}


def of_kind(evidence: Sequence[Evidence], kind: str) -> Evidence | None:
    """The evidence of a kind, where there is any."""
    return next((found for found in evidence if found.kind == kind), None)
