"""Doubts about the gold (printed versus executed answers), and which answers of models are equal."""

from collections.abc import Sequence
from dataclasses import replace

from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import number_text, round_half_up
from eval_pipeline.core.shown import rate
from eval_pipeline.tracks.capabilities import Contradiction
from eval_pipeline_plugins.tracks.finqa.cases.document import FinqaCase, FinqaGold
from eval_pipeline_plugins.tracks.finqa.metrics.matches import exact_match
from eval_pipeline_plugins.tracks.finqa.programs.matching import within_either

FAR = 0.02
"""Relative difference above which the printed answer is a different quantity rather than a different rounding."""
_FAR_SCORE, _NEAR_SCORE = 0.6, 0.2
"""Set by judgement rather than measured.

If they differ beyond rounding, one of the two is wrong, though not necessarily the program.
"""
_SIGN_SCORE = 0.3
_UNITS = (1.0, 100.0, 0.01)
_HUNDREDS = (100.0, 0.01)


def printed_contradictions(case: FinqaCase) -> list[Contradiction]:
    """Returns the turns whose executed answer, rounded like the printed one, differs from it."""
    found = []
    for turn in case.turns:
        gold, distance = turn.gold, printed_distance(turn.gold)
        if distance is not None:
            score = _NEAR_SCORE if distance <= FAR else _SIGN_SCORE if _differs_in_sign(gold) else _FAR_SCORE
            found.append(Contradiction(turn.id, _sentence(gold, distance), score, of_printing=_is_of_printing(gold)))
    return found


def _differs_in_sign(gold: FinqaGold) -> bool:
    return isinstance(gold.expected, float) and _is_printed(replace(gold, expected=-gold.expected), (1.0, *_HUNDREDS))


def _is_of_printing(gold: FinqaGold) -> bool:
    """Whether the executed answer is the printed one in percent, or as a fraction."""
    return isinstance(gold.expected, float) and _is_printed(gold, _HUNDREDS)


def _is_printed(gold: FinqaGold, units: Sequence[float]) -> bool:
    """Whether the executed answer in one of these units, rounded like the printed answer, is it."""
    if isinstance(gold.expected, str) or gold.printed_number is None:
        return False
    shown, decimals = (
        gold.printed_number.value * (100 if gold.printed_number.percent else 1),
        gold.printed_number.decimals,
    )
    wanted = round_half_up(shown, decimals)
    return any(round_half_up(gold.expected * unit, decimals) == wanted for unit in units)


def printed_distance(gold: FinqaGold) -> float | None:
    """Returns the relative distance of the executed answer from the printed one, in the unit in which they are closest.

    Returns None if they agree at the printed precision, or if there is nothing to compare.
    """
    if exact_match(gold.expected, gold.expected, gold.printed, gold.printed_number) is not False:
        return None
    if isinstance(gold.expected, str) or gold.printed_number is None:
        return 1.0
    printed = gold.printed_number.value
    return min(abs(gold.expected * unit - printed) for unit in _UNITS) / max(abs(printed), 1e-12)


def _sentence(gold: FinqaGold, distance: float) -> str:
    by = "less than 0.1%" if distance < 0.001 else rate(distance) if distance <= 10 else "more than 1,000%"
    also = " even at x100" if distance > FAR else ""
    return (
        f"the program '{gold.program_text}' gives {gold.expected_text()}, the printed answer is {gold.printed}: "
        f"they differ by {by}{also}"
    )


def answer_keys(results: Sequence[Json]) -> list[str]:
    """Returns a key for each answer.

    Answers within 1% or 0.001 of each other (as in the primary metric) get the same key.

    This relation is not transitive, so numbers are sorted and each is compared with the first of its group.
    """
    values = [told["text"] if "text" in told else float(told["value"]) for told in results]
    keys = {value: f"text {value.casefold()}" for value in values if isinstance(value, str)}
    numbers: dict[float, str] = {}
    first: float | None = None
    for value in sorted({value for value in values if isinstance(value, float)}):
        if first is None or not within_either(value, first):
            first = value
        numbers[value] = number_text(first)
    return [keys[value] if isinstance(value, str) else numbers.get(value, str(value)) for value in values]
