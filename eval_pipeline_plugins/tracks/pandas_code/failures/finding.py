"""Determines the failure mode of a wrong answer that ran, by the strongest available evidence."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed, SnippetRan
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import given_answers, right_answers
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import is_polars
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.failures.modes import OF_ASPECT, OF_KIND, Failure
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import (
    ANOTHER_ORDER,
    Aligned,
    align,
    are_equal,
    compare,
)
from eval_pipeline_plugins.tracks.pandas_code.results.figures import FIGURE
from eval_pipeline_plugins.tracks.pandas_code.results.forms import AS_IT_STANDS, Form
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import ResultTable, read_result
from eval_pipeline_plugins.tracks.pandas_code.results.structure import differences
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import known_of
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import mutants_of

_FACTORS = (100, 1000, 1_000_000, 60, 3600, 24, 7, 12)
_DECIMALS = range(7)


def failure_of_result(
    returned: Any, expected: Any, *, ordered: bool, order_keys: Sequence[str], form: Form = AS_IT_STANDS
) -> Failure | None:
    """Returns the mistake that a result shows, given the expected one; None if it shows none.

    Args:
        returned: the result, in the sandbox's tagged JSON.
        expected: the right result, in the same form.
        ordered: whether the order of rows matters.
        order_keys: the columns that define the order.
        form: what is asked of the form of the result.
    """
    found = compare(returned, expected, ordered=ordered, order_keys=order_keys, form=form)
    if found.equal:
        return None
    if found.why == ANOTHER_ORDER:
        return Failure("missing_sort", "the rows are the expected ones in another order")
    wanted = read_result(expected)
    try:
        got = read_result(returned)
    except ValueError:
        return Failure("wrong_shape", "the result has no form that can be compared")
    if FIGURE in (got.kind, wanted.kind):
        if got.kind != wanted.kind:
            return Failure("wrong_shape", f"expected a {wanted.kind}, got a {got.kind}")
        return None  # rows of a chart are of many kinds: what is wrong with one is not what is wrong with a table
    aligned = align(got, wanted)
    if got.kind != wanted.kind and ("value" in (got.kind, wanted.kind) or not aligned.pairs):
        if found.needs and all(Relaxation.MISSING_COLUMNS in one for one in found.needs):
            names = [str(column.name) for column in (*wanted.index, *wanted.columns) if column.name is not None]
            return Failure("wrong_column", f"there are only some of the columns {', '.join(names)}")
        return Failure("wrong_shape", f"expected a {wanted.kind}, got a {got.kind}")
    return _of_columns(aligned) or _of_rows(got, wanted, aligned) or _of_cells(aligned)


def failure_of_answers(
    given: Mapping[str, str], right: Mapping[str, bool], labels: Mapping[str, str]
) -> Failure | None:
    """Returns the mistake that closed answers show.

    Args:
        given: the given answers, by name.
        right: whether each label is met.
        labels: the right answers.
    """
    wrong = [name for name, is_right in right.items() if not is_right]
    missing = [name for name in wrong if name not in given]
    if missing:
        return Failure("wrong_format", f"@{missing[0]}[...] is not in the answer")
    for name in wrong:
        number, label = _number(given[name]), _number(labels[name])
        if number is None and label is not None:
            return Failure("wrong_format", f"{name} is no number: {given[name][:40]}")
        if number is None and _letters(given[name]) == _letters(labels[name]):
            return Failure("wrong_format", f"{name} is written as {given[name][:40]}")
        if number is not None and label is not None and (why := _scaled([number], [label])):
            return Failure("wrong_unit", f"{name} is {why}")
    return None


def _of_columns(aligned: Aligned) -> Failure | None:
    if not aligned.missing and not aligned.extra:
        return None
    if aligned.missing:
        return Failure("wrong_column", f"a column is missing: {aligned.missing[0].name}")
    return Failure("wrong_column", f"nobody asked for a column: {aligned.extra[0].name}")


def _of_rows(got: ResultTable, wanted: ResultTable, aligned: Aligned) -> Failure | None:
    """Returns the mistake if one of two results with the same columns is the beginning of the other."""
    if got.rows == wanted.rows or not aligned.pairs:
        return None
    less = min(got.rows, wanted.rows)
    if less and all(pair.generated[:less] == pair.expected[:less] for pair in aligned.pairs):
        return Failure("wrong_n", f"expected {wanted.rows:,} rows, got {got.rows:,}, of which the first are the same")
    return None


def _of_cells(aligned: Aligned) -> Failure | None:
    """Returns the mistake in a result of the expected shape: texts for numbers, another unit, another rounding."""
    for pair in aligned.pairs:
        if len(pair.generated) != len(pair.expected) or pair.generated == pair.expected:
            continue
        texts = [isinstance(cell, str) and _number(cell) is not None for cell in pair.generated]
        if any(texts) and all(isinstance(cell, int | float) for cell in pair.expected):
            return Failure("wrong_shape", f"{pair.name or 'the result'} has texts for numbers")
        numbers = _numbers(pair.generated), _numbers(pair.expected)
        if numbers[0] and len(numbers[0]) == len(numbers[1]) and (why := _scaled(*numbers)):
            return Failure("wrong_unit", f"{pair.name or 'the result'} is {why}")
    return None


def _numbers(cells: Sequence[Hashable]) -> list[float]:
    return [float(cell) for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]


def _scaled(given: Sequence[float], right: Sequence[float]) -> str:
    """Returns by what factor or rounding numbers differ from the right ones, in words; empty if there is none."""
    pairs = [(one, other) for one, other in zip(given, right, strict=True) if one or other]
    if not pairs or all(math.isclose(one, other, rel_tol=1e-9) for one, other in pairs):
        return ""
    for factor in _FACTORS:
        if all(math.isclose(one, other * factor, rel_tol=1e-6) for one, other in pairs):
            return f"{factor:,} times the right one"
        if all(math.isclose(one * factor, other, rel_tol=1e-6) for one, other in pairs):
            return f"the right one divided by {factor:,}"
    if all(math.isclose(one, -other, rel_tol=1e-6) for one, other in pairs):
        return "the right one with the other sign"
    for decimals in _DECIMALS:
        if all(_is_rounded(one, other, decimals) for one, other in pairs):
            return f"the right one rounded to {decimals} decimals"
        if all(_is_rounded(other, one, decimals) for one, other in pairs):
            return f"not rounded to {decimals} decimals"
    return ""


def _is_rounded(number: float, precise: float, decimals: int) -> bool:
    """Whether a number is another one rounded, with at least one significant digit left."""
    return number != 0 and math.isclose(number, round(precise, decimals), rel_tol=1e-12)


def _number(text: str) -> float | None:
    try:
        found = float(Decimal(text.strip()))
    except (InvalidOperation, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


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
        given = given_answers(result, gold.question)
        return failure_of_answers(given, right_answers(given, gold.answers, gold.question), gold.answers)
    expected = expected_result(gold)
    if isinstance(expected, SnippetFailed):
        return None
    return failure_of_result(result, expected, ordered=gold.ordered, order_keys=gold.order_keys, form=gold.form)


def _is_right(gold: PandasGold, result: Json) -> bool:
    if gold.answers:
        return all(right_answers(given_answers(result, gold.question), gold.answers, gold.question).values())
    return are_equal(result, expected_result(gold), ordered=gold.ordered, order_keys=gold.order_keys, form=gold.form)


def _by_aspect(code: str, reference: str) -> Failure | None:
    differing = differences(code, reference)
    aspect = next((aspect for aspect in OF_ASPECT if aspect in differing), None)
    if aspect is None:
        return None
    return Failure(OF_ASPECT[aspect], f"the code differs from the reference code in its {aspect}")
