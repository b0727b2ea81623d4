"""Determines the failure mode of a wrong answer that ran, by the strongest available evidence."""

from collections.abc import Callable, Mapping

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed, SnippetRan
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import given_answers, right_answers
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import is_polars
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.failures.modes import OF_ASPECT, OF_KIND, Failure
from eval_pipeline_plugins.tracks.pandas_code.failures.of_results import failure_of_answers, failure_of_result
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import are_equal
from eval_pipeline_plugins.tracks.pandas_code.results.structure import differences
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import known_of
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import mutants_of

_MOST_MENDED = 12


_MEND_S = 3.0


def failure_by_mending(gold: PandasGold, code: str, is_right: Callable[[Json], bool]) -> Failure | None:
    """Returns the mistake in code that becomes right when one of its own requirements is altered.

    Args:
        gold: the turn's gold, with the tables.
        code: the answer's code; its mutants are run in the sandbox.
        is_right: judges a result in tagged JSON.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    if parse(code) is None:
        return None
    for mutant in mutants_of(code, known_of(gold))[:_MOST_MENDED]:
        found = sandbox(gold.context.layer).run(mutant.code, gold.context.paths, wall_s=_MEND_S)
        if isinstance(found, SnippetRan) and is_right(found.result):
            return Failure(OF_KIND[mutant.kind], f"the answer is right as soon as {mutant.words}")
    return None


Met = Mapping[str, Json]


_UNIT = "wrong_unit"


_OF_UNITS = ("constant", "derived", "step")


"""Kinds of requirements that may concern nothing but a unit or a rounding, if the result shows that."""


def failure_of(gold: PandasGold, code: str, result: Json, met: Callable[[], Met | None]) -> Failure | None:
    """Returns what went wrong in an answer, by the strongest evidence available; None if nothing shows it.

    From strongest to weakest, the evidence is: steps after which the reference code behaves like the answer; the result
    itself; without reference code, a correct mutant of the answer's own code; where nothing could be tried, aspects in
    which the code differs from the reference code.

    Args:
        gold: the turn's gold.
        code: the answer's code; empty for a recorded answer without code.
        result: the result of the code, in tagged JSON.
        met: finds an explanation on variants of the tables (`robust.explaining`); None without variants.

    Raises:
        NoSandboxError: this machine has no sandbox that can run code.
    """
    explained = met() if code and gold.code is not None else None
    shown = _shown_by_result(gold, result)
    if explained and explained["exact"]:
        kind, words = explained["kinds"][0], "; ".join(explained["words"])
        if (
            shown is not None
            and shown.mode == _UNIT
            and kind in _OF_UNITS
            and ("round" in words) >= ("round" in shown.why)
        ):
            return Failure(_UNIT, f"{words}: {shown.why}")
        return Failure(OF_KIND[kind], words)
    if shown is not None or not code:
        return shown
    if gold.code is None:
        return failure_by_mending(gold, code, lambda other: _is_right(gold, other))
    if explained or is_polars(gold.context):  # the lines of polars say nothing beside those of pandas code
        return None
    return _by_aspect(code, gold.code)


def _shown_by_result(gold: PandasGold, result: Json) -> Failure | None:
    if gold.tests is not None:
        return None
    if gold.answers:
        given = given_answers(result)
        return failure_of_answers(given, right_answers(given, gold.answers, gold.question), gold.answers)
    expected = expected_result(gold)
    if isinstance(expected, SnippetFailed):
        return None
    return failure_of_result(result, expected, ordered=gold.ordered, order_keys=gold.order_keys, form=gold.form)


def _is_right(gold: PandasGold, result: Json) -> bool:
    if gold.answers:
        return all(right_answers(given_answers(result), gold.answers, gold.question).values())
    return are_equal(result, expected_result(gold), ordered=gold.ordered, order_keys=gold.order_keys, form=gold.form)


def _by_aspect(code: str, reference: str) -> Failure | None:
    differing = differences(code, reference)
    aspect = next((aspect for aspect in OF_ASPECT if aspect in differing), None)
    if aspect is None:
        return None
    return Failure(OF_ASPECT[aspect], f"the code differs from the reference code in its {aspect}")
