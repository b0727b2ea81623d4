"""Determines the failure mode of a wrong answer that ran, by the strongest available evidence."""

from collections.abc import Callable, Mapping

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox import SnippetFailed
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.cases.closed_answers import given_answers, right_answers
from eval_pipeline.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline.tracks.pandas_code.dialect import is_polars
from eval_pipeline.tracks.pandas_code.failures.modes import OF_ASPECT, OF_KIND, Failure
from eval_pipeline.tracks.pandas_code.failures.of_code import failure_beside_reference, failure_by_mending
from eval_pipeline.tracks.pandas_code.failures.of_results import failure_of_answers, failure_of_result
from eval_pipeline.tracks.pandas_code.results.comparison import compare
from eval_pipeline.tracks.pandas_code.results.structure import differences

Met = Mapping[str, Json]


def failure_of(gold: PandasGold, code: str, result: Json, met: Callable[[], Met | None]) -> Failure | None:
    """Returns what went wrong in an answer, by the strongest evidence available; None if nothing shows it.

    From strongest to weakest, the evidence is: one altered line of the reference code; a mutant of the reference code
    with the same results on all variants of the tables; the result itself; without reference code, a correct mutant of
    the answer's own code; the mutant most similar to the answer; aspects in which the code differs from the reference
    code.

    Args:
        gold: the turn's gold.
        code: the answer's code; empty for a recorded answer without code.
        result: the result of the code, in tagged JSON.
        met: finds an explanation on variants of the tables (`robust.explaining`); None without variants.

    Raises:
        NoSandboxError: this machine has no sandbox that can run code.
    """
    if code and gold.code is not None:
        if found := failure_beside_reference(code, gold.code):
            return found
        if (explained := met()) and explained["exact"] and (found := _as_told(explained)):
            return found
    else:
        explained = None
    shown = _shown_by_result(gold, result)
    if shown is not None:
        return shown
    if gold.code is None:
        return failure_by_mending(gold, code, lambda other: _is_right(gold, other)) if code else None
    if not code:
        return None
    if is_polars(gold.context):  # its lines say nothing beside those of pandas code
        return _as_told(explained) if explained else None
    return (explained and _as_told(explained)) or _by_aspect(code, gold.code)


def _as_told(explained: Met) -> Failure | None:
    """Returns the mode of the first requirement that explains an answer; None if none does."""
    if not explained["kinds"]:
        return None
    like = "the same as" if explained["exact"] else "most like"
    return Failure(OF_KIND[explained["kinds"][0]], f"on all variants {like} if {explained['words'][0]}")


def _shown_by_result(gold: PandasGold, result: Json) -> Failure | None:
    if gold.tests is not None:
        return None
    if gold.answers:
        given = given_answers(result)
        return failure_of_answers(given, right_answers(given, gold.answers, gold.question), gold.answers)
    expected = expected_result(gold)
    if isinstance(expected, SnippetFailed):
        return None
    return failure_of_result(result, expected, ordered=gold.ordered, order_keys=gold.order_keys)


def _is_right(gold: PandasGold, result: Json) -> bool:
    if gold.answers:
        return all(right_answers(given_answers(result), gold.answers, gold.question).values())
    return compare(result, expected_result(gold), ordered=gold.ordered, order_keys=gold.order_keys).equal


def _by_aspect(code: str, reference: str) -> Failure | None:
    differing = differences(code, reference)
    aspect = next((aspect for aspect in OF_ASPECT if aspect in differing), None)
    if aspect is None:
        return None
    return Failure(OF_ASPECT[aspect], f"the code differs from the reference code in its {aspect}")
