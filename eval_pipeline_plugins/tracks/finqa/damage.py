"""Makes responses from the gold that fail in a given way, for the simulated provider.

Every response is scored before it is returned, so that the drawn failure mode is the one that the metrics find.
"""

from collections.abc import Callable, Iterator
from math import isfinite
from random import Random

from eval_pipeline.answers.printed import Number
from eval_pipeline.core.model import Json, Ran
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.finqa import FAILURE_MODES
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, FinqaGold
from eval_pipeline_plugins.tracks.finqa.cases.gold import gold_response, gold_steps, response_text
from eval_pipeline_plugins.tracks.finqa.metrics.failure_mode import failure_mode
from eval_pipeline_plugins.tracks.finqa.metrics.matches import exact_match, numerical_match, sign_agnostic_match
from eval_pipeline_plugins.tracks.finqa.programs.execute import cell_number, run_program
from eval_pipeline_plugins.tracks.finqa.programs.program import expanded_operations
from eval_pipeline_plugins.tracks.finqa.responses.artefact import parse_plan
from eval_pipeline_plugins.tracks.finqa.responses.refusals import says_no_answer

Steps = list[dict[str, Json]]

_OTHER_OPERATION = {"add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply", "exp": "multiply"}
_OTHER_ROW = {
    "table_sum": "table_average",
    "table_average": "table_sum",
    "table_max": "table_min",
    "table_min": "table_max",
}


def damaged_response(gold: FinqaGold, document: Document, mode: str, rng: Random) -> str | None:
    """Returns a response with the given `failure_mode`, or None if this gold cannot fail so.

    No inherited errors are made here, because they come from another turn.

    Raises:
        ValueError: the mode is not in `FAILURE_MODES`.
    """
    if mode not in FAILURE_MODES:
        raise ValueError(f"unknown failure mode '{mode}'; known: {', '.join(FAILURE_MODES)}")
    candidates = (text for text in _candidates(gold, document, mode, rng) if _mode_of(text, gold, document) == mode)
    return next(candidates, None)


def _mode_of(text: str, gold: FinqaGold, document: Document) -> str | None:
    """Returns the failure mode that the metrics assign to a response to the first turn of a conversation."""
    try:
        plan = parse_plan(text, False)
    except ArtefactError:
        return "no_answer" if not text.strip() else "refusal" if says_no_answer(text) else "execution_error"
    if plan.program is None:
        return None
    outcome = run_program(plan.program, gold.table)
    if not isinstance(outcome, Ran):
        return "execution_error"
    predicted = outcome.value.get("text", outcome.value.get("value"))
    return failure_mode(
        numerical_match=numerical_match(predicted, gold.expected),
        exact_match=exact_match(predicted, gold.expected, gold.printed, gold.printed_number),
        no_answer=False,
        refused=False,
        failed=False,
        sign_agnostic_match=sign_agnostic_match(predicted, gold.expected),
        predicted=predicted,
        expected=gold.expected,
        plan_program=plan.program,
        resolved_plan=plan.program,
        resolved_gold=gold.program,
        resolved_plan_operations=expanded_operations(plan.program),
        resolved_gold_operations=gold.operations,
        own_earlier=(),
        document=document,
        guessed_plan=None,
    )


def _candidates(gold: FinqaGold, document: Document, mode: str, rng: Random) -> Iterator[str]:
    if mode in ("wrong_year", "wrong_row"):
        return _other_cell(gold, document, rng)
    return _CANDIDATES[mode](gold, rng)


def _extract(value: float | str) -> dict[str, Json]:
    return {"tool": "extract", "value": value, "source": "document"}


def _compute(operation: str, *arguments: str | float) -> dict[str, Json]:
    return {"tool": "compute", "operation": operation, "args": list(arguments)}


def _last(steps: Steps) -> str:
    return f"#{len(steps) - 1}"


def _computes(steps: Steps) -> list[int]:
    return [index for index, step in enumerate(steps) if step["tool"] == "compute"]


def _shuffled(rng: Random, items: list[int]) -> list[int]:
    return rng.sample(items, len(items))


def _replaced(steps: Steps, index: int, **changes: Json) -> str:
    return response_text([*steps[:index], {**steps[index], **changes}, *steps[index + 1 :]])


def _with_swapped(steps: Steps, rng: Random) -> Iterator[str]:
    """Swaps the two arguments of one step."""
    for index in _shuffled(rng, _computes(steps)):
        arguments = steps[index]["args"]
        if len(arguments) == 2:
            yield _replaced(steps, index, args=arguments[::-1])


def _no_answer(gold: FinqaGold, rng: Random) -> Iterator[str]:
    yield ""


def _refusal(gold: FinqaGold, rng: Random) -> Iterator[str]:
    yield rng.choice(("The page does not say.", "This cannot be determined from the document.", "not disclosed"))


def _inherited(gold: FinqaGold, rng: Random) -> Iterator[str]:
    yield from ()


def _swapped(gold: FinqaGold, rng: Random) -> Iterator[str]:
    yield from _with_swapped(gold_steps(gold.program), rng)


def _other_cell(gold: FinqaGold, document: Document, rng: Random) -> Iterator[str]:
    """Puts one number of the table in another's place, in random order of numbers."""
    steps = gold_steps(gold.program)
    cells = [number for row in document.table[1:] for cell in row[1:] if (number := cell_number(cell)) is not None]
    for index in _shuffled(rng, [index for index, step in enumerate(steps) if step["tool"] == "extract"]):
        for number in rng.sample(cells, len(cells)):
            yield _replaced(steps, index, value=number)


def _execution_error(gold: FinqaGold, rng: Random) -> Iterator[str]:
    steps = gold_steps(gold.program)
    ways: tuple[Callable[[], str], ...] = (
        lambda: _broken_json(gold, rng),
        lambda: _unknown_operation(steps, rng),
        lambda: response_text([*steps, _compute("add", f"#{len(steps) + rng.randint(0, 3)}", _last(steps))]),
        lambda: response_text([*steps, _extract(0), _compute("divide", _last(steps), f"#{len(steps)}")]),
    )
    for way in rng.sample(ways, len(ways)):
        yield way()


def _broken_json(gold: FinqaGold, rng: Random) -> str:
    text = gold_response(gold)
    return text[: rng.randint(len(text) // 2, len(text) - 3)] if rng.random() < 0.5 else text.replace('": ', '" ', 1)


def _unknown_operation(steps: Steps, rng: Random) -> str:
    name = rng.choice(("growth_rate", "percent_of", "cagr", "round", "minus", "difference_in_percent"))
    computes = _computes(steps)
    if not computes:
        return response_text([*steps, _compute(name, _last(steps))])
    return _replaced(steps, rng.choice(computes), operation=name)


def _sign_error(gold: FinqaGold, rng: Random) -> Iterator[str]:
    steps = gold_steps(gold.program)
    yield from _with_swapped(steps, rng)
    if len(steps) == 1 and isinstance(gold.expected, float):
        yield response_text([_extract(-gold.expected)])
    yield response_text([*steps, _compute("multiply", _last(steps), "const_m1")])


def _scale_error(gold: FinqaGold, rng: Random) -> Iterator[str]:
    steps = gold_steps(gold.program)
    small = isinstance(gold.expected, float) and abs(gold.expected) < 5
    operations = ("multiply", "divide") if small else ("divide", "multiply")  # e.g. confusing 0.12 and 12%
    for operation in operations if rng.random() < 0.8 else operations[::-1]:
        if len(steps) == 1 and isinstance(gold.expected, float):
            yield response_text([_extract(gold.expected * 100 if operation == "multiply" else gold.expected / 100)])
        yield response_text([*steps, _compute(operation, _last(steps), "const_100")])


def _wrong_operations(gold: FinqaGold, rng: Random) -> Iterator[str]:
    steps = gold_steps(gold.program)
    computes = _computes(steps)
    if not computes:
        other = _other_value(gold, rng)
        for operation in rng.sample(("subtract", "add", "divide", "multiply"), 4):
            yield response_text([*steps, _extract(other), _compute(operation, "#0", "#1")])
        return
    if len(computes) > 1 and rng.random() < 0.5:
        yield response_text(steps[: computes[-1]])
    for index in _shuffled(rng, computes):
        name = steps[index]["operation"]
        other_name = _OTHER_OPERATION.get(name) or _OTHER_ROW.get(name)
        if other_name is not None:
            yield _replaced(steps, index, operation=other_name)
    for index in computes[1:]:
        yield response_text(steps[:index])
    if steps[0]["tool"] == "extract":
        yield response_text(steps[:1])
    yield response_text([_extract(_other_value(gold, rng))])
    if isinstance(gold.expected, str):
        yield response_text([_extract("no" if gold.expected == "yes" else "yes")])


def both_words(gold: FinqaGold) -> str | None:
    """Returns a response with both words where one is right, None where a number is."""
    return response_text([_extract("yes, no")]) if isinstance(gold.expected, str) else None


def _wrong_operands(gold: FinqaGold, rng: Random) -> Iterator[str]:
    steps = gold_steps(gold.program)
    extracts = [index for index, step in enumerate(steps) if step["tool"] == "extract"]
    for _ in range(4):
        for index in _shuffled(rng, extracts):
            yield _replaced(steps, index, value=_near(_plain(steps[index]["value"]), rng))
    for factor in (-3.7, 0.013, 517.3, -0.0021):  # far off, for cases where near values do not change the answer
        for index in _shuffled(rng, extracts):
            yield _replaced(steps, index, value=_plain(steps[index]["value"]) * factor or factor)


def _other(gold: FinqaGold, rng: Random) -> Iterator[str]:
    steps = gold_steps(gold.program)
    if not _computes(steps):
        yield response_text([*steps, _extract(_other_value(gold, rng))])
        yield from (response_text([*steps, _extract(word)]) for word in ("yes", "no"))
        return
    for name, argument in rng.sample((("multiply", "const_2"), ("divide", "const_3"), ("add", "const_10")), 3):
        yield response_text([*steps, _compute(name, _last(steps), argument)])
    yield response_text([*steps, _extract(_other_value(gold, rng))])
    if isinstance(gold.expected, str):
        yield response_text([*steps, _extract("no" if gold.expected == "yes" else "yes")])


def _rounding(gold: FinqaGold, rng: Random) -> Iterator[str]:
    """Yields answers rounded or cut to too few digits, then answers off by less than 1%."""
    expected = gold.expected
    if isinstance(expected, str) or gold.printed_number is None:
        return
    steps = gold_steps(gold.program)
    for value in _rounded_values(expected, gold.printed_number, rng):
        kept = steps if _computes(steps) else []
        yield response_text([*kept, {**_extract(value), "source": f"{_last(steps)}, rounded"}])


def _rounded_values(expected: float, printed: Number, rng: Random) -> Iterator[float]:
    for digits in (2, 3, 4, 5):
        yield float(f"{expected:.{digits}g}")
        cut = float(f"{expected:.{digits - 1}e}")
        yield cut - (cut - expected) * 2 if abs(cut) > abs(expected) else cut
    for share in (0.004, 0.007, 0.0095):
        yield from (expected * (1 + sign * share) for sign in rng.sample((-1, 1), 2))
    unit = 0.01 if printed.percent else 1.0
    step = unit / 10.0 ** min(printed.decimals, 20)
    yield from (expected + sign * min(step, 0.00095) for sign in (-1, 1))


def _other_value(gold: FinqaGold, rng: Random) -> float:
    """Returns a number of the answer's size that is not the answer."""
    return _near(gold.expected if isinstance(gold.expected, float) else 1.0, rng)


def _near(value: float, rng: Random) -> float:
    """Returns another number of the same size and precision, as if read from an adjacent cell."""
    text = f"{value:.10g}"
    decimals = len(text.partition(".")[2]) if "e" not in text else 6
    factor = rng.choice((rng.uniform(0.55, 0.93), rng.uniform(1.07, 1.6)))
    near = round(value * factor, decimals)
    if near == value or not isfinite(near):
        near = value + rng.choice((-3.0, 2.0, 5.0))
    return near


def _plain(value: float | str) -> float:
    return float(value[:-1]) / 100 if isinstance(value, str) else value


_CANDIDATES: dict[str, Callable[[FinqaGold, Random], Iterator[str]]] = {
    "no_answer": _no_answer,
    "refusal": _refusal,
    "execution_error": _execution_error,
    "inherited_error": _inherited,
    "sign_error": _sign_error,
    "scale_error": _scale_error,
    "swapped_operands": _swapped,
    "wrong_operations": _wrong_operations,
    "wrong_operands": _wrong_operands,
    "other": _other,
    "rounding": _rounding,
}
