"""Determines what each turn of a conversation may have taken over from earlier turns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Attempt, Ran
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, FinqaCase, FinqaGold, FinqaTurn
from eval_pipeline_plugins.tracks.finqa.mistakes.carried import (
    CarriedAnswer,
    Resolved,
    bands_of,
    computes,
    near_any,
    resolve,
)
from eval_pipeline_plugins.tracks.finqa.mistakes.guesses import guessed_program
from eval_pipeline_plugins.tracks.finqa.programs.lookup import resolved
from eval_pipeline_plugins.tracks.finqa.programs.matching import Answer, answers_match
from eval_pipeline_plugins.tracks.finqa.programs.program import Program, expanded_operations, literal_values
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan, comparable

NOTHING_BEFORE: Mapping[str, Any] = {"earlier": (), "own_earlier": (), "turn_before": None, "guessed_plan": None}
"""Conversation values of a turn's metrics if nothing is known about earlier turns."""


NOT_OWN = frozenset({"gold", "none"})
"""Histories in which a model does not see its own answers.

With any other, even an unknown one, it may have seen them.
"""


@value
class EarlierTurn:
    """An earlier turn of the conversation in the same sample.

    Attributes:
        index: index of the turn.
        predicted: the model's answer; None if it gave none.
        program: the model's calculation with carried values replaced; None if no plan could be parsed.
        gold: the gold program, likewise.
        is_right: whether it is right by `numerical_match`.
    """

    index: int
    predicted: Answer
    program: Program | None
    gold: Program
    expected: float | str
    is_right: bool


def prediction(attempt: Attempt) -> tuple[Answer, bool]:
    """Returns the answer of an attempt and whether it has a percent sign; (None, False) without an answer."""
    if not isinstance(attempt.outcome, Ran):
        return None, False
    found = attempt.outcome.value
    if "text" in found:
        return str(found["text"]), False
    return float(found["value"]), bool(found["percent"])


def program_of(attempt: Attempt[FinqaPlan], page: Document) -> Program | None:
    """Returns an attempt's calculation in the unit of gold programs; None if no plan could be parsed."""
    return _comparable(_written_program(attempt, page), attempt)


def _comparable(written: Program | None, attempt: Attempt[FinqaPlan]) -> Program | None:
    return None if written is None or attempt.artefact is None else comparable(written, attempt.artefact.in_percent)


def _written_program(attempt: Attempt[FinqaPlan], page: Document) -> Program | None:
    plan = attempt.artefact
    return None if plan is None or plan.program is None else resolved(plan.program, page.table)


def own_values(final: Attempt[FinqaPlan], gold: FinqaGold, page: Document) -> dict[str, Any]:
    """Returns plan and gold program as written; they are scored like this if nothing is carried over."""
    written = _written_program(final, page)
    return _plan_values(written, _comparable(written, final)) | {
        "gold_program": gold.program,
        "gold_operation_list": gold.operations,
        "gold_literals": gold.literals,
        "resolved_gold": gold.program,
        "resolved_gold_operations": gold.operations,
        "resolved_gold_literals": gold.literals,
    }


def _plan_values(written: Program | None, program: Program | None) -> dict[str, Any]:
    """Returns the values of a plan as written (None: it is guessed), and in the unit of gold programs."""
    counted = program if written is None else written
    operations = None if counted is None else expanded_operations(counted)
    literals = None if program is None else literal_values(program)
    return {
        "written_program": written,
        "plan_program": program,
        "plan_operation_list": operations,
        "plan_literals": literals,
        "resolved_plan": program,
        "resolved_plan_operations": operations,
        "resolved_plan_literals": literals,
    }


def conversation_values(
    case: FinqaCase, said: Sequence[tuple[FinqaTurn, Sequence[Attempt[FinqaPlan]]]], history: str
) -> list[dict[str, Any]]:
    """Returns the conversation values of each turn's metrics: programs with carried values replaced, and earlier turns.

    Args:
        case: the conversation.
        said: the asked turns of one sample of the conversation, in order, each with its attempts.
        history: `gold` or `own`, i.e. which answers the model was shown; may be another text for recorded answers.

    Returns:
        For each turn: `earlier`, the turns before it; `own_earlier`, those whose answers the model may have seen and
        from which alone it can inherit an error (None if it saw no answer of its own); `turn_before`; `guessed_plan`, a
        calculation found for an answer that shows none; and the programs with carried values replaced.
    """
    teller = _Teller(case, history)
    return [teller.next(turn, attempts[-1]) for turn, attempts in said]


class _Teller:
    """Processes the turns of a conversation and keeps their answers, latest first."""

    def __init__(self, case: FinqaCase, history: str) -> None:
        self._case, self._own_history, self._sees_own = case, history == "own", history not in NOT_OWN
        self._earlier: list[EarlierTurn] = []
        self._own: list[CarriedAnswer] = []
        self._gold: list[CarriedAnswer] = []
        self._golds = 0
        self._bands = set[int]()

    def next(self, turn: FinqaTurn, final: Attempt[FinqaPlan]) -> dict[str, Any]:
        self._take_golds(turn.index)
        gold, program = turn.gold, program_of(final, self._case.context)
        earlier = tuple(self._earlier)
        told: dict[str, Any] = {"earlier": earlier, "own_earlier": earlier if self._sees_own else None}
        told["turn_before"] = self._turn_before(turn.index)
        guess = None if program is not None else self._guessed(prediction(final)[0])
        told["guessed_plan"] = guess
        if guess is not None:
            told |= _plan_values(None, guess)
            program = guess
        written_out = program
        if program is not None and (self._may_carry(program) or self._may_carry(gold.program)):
            answers = [*self._own, *self._gold] if self._own_history else [*self._gold, *self._own]
            found = self._resolved(program, answers, gold.program)
            written_out = found.program
            in_percent = final.artefact is not None and final.artefact.in_percent
            told |= _changed(found, self._resolved(gold.program, self._gold, program), in_percent)
        if turn.index + 1 < len(self._case.turns):
            self._keep(turn, prediction(final)[0], written_out)
        return told

    def _guessed(self, predicted: Answer) -> Program | None:
        """Returns a calculation for an answer that shows none, first from numbers of earlier turns."""
        if not isinstance(predicted, float):
            return None
        used = [number for turn in self._earlier for number in _numbers_of(turn)]
        return guessed_program(predicted, self._case.context, used)

    def _keep(self, turn: FinqaTurn, predicted: Answer, resolved: Program | None) -> None:
        gold = turn.gold
        right = answers_match(predicted, gold.expected)
        self._earlier.append(EarlierTurn(turn.index, predicted, resolved, gold.program, gold.expected, right))
        if resolved is not None and isinstance(predicted, float) and computes(resolved):
            self._own.insert(0, CarriedAnswer(predicted, resolved))
            if not right:  # a right answer equals the gold answer, which is kept already
                self._bands.update(bands_of(predicted))

    def _may_carry(self, program: Program) -> bool:
        """Whether any of its numbers is close to an earlier answer; usually not, which saves all further work."""
        return bool(self._bands) and bool(near_any(program, self._bands))

    def _turn_before(self, index: int) -> bool | None:
        """Whether the immediately preceding turn was right; None if there is none or it was not asked."""
        before = self._earlier[-1] if self._earlier else None
        return before.is_right if before is not None and before.index == index - 1 else None

    def _resolved(self, program: Program, answers: Sequence[CarriedAnswer], other: Program | None) -> Resolved:
        return resolve(program, answers, other, self._case.context.prints)

    def _take_golds(self, index: int) -> None:
        """Takes in the gold answers of the turns before `index`, including turns that were not asked."""
        for turn in self._case.turns[self._golds : index]:
            gold = turn.gold
            if not isinstance(gold.expected, float):
                continue
            written = gold.program
            if self._may_carry(written):
                written = self._resolved(written, self._gold, None).program
            if computes(written):
                self._gold.insert(0, CarriedAnswer(gold.expected, written))
                self._bands.update(bands_of(gold.expected))
        self._golds = max(self._golds, index)


def _numbers_of(turn: EarlierTurn) -> Iterator[float]:
    if isinstance(turn.predicted, float):
        yield turn.predicted
    if turn.program is not None:
        yield from literal_values(turn.program)


def _changed(plan: Resolved, gold: Resolved, in_percent: bool) -> dict[str, Any]:
    """Returns the values for those programs in which something was replaced."""
    told: dict[str, Any] = {}
    for name, found in (("plan", plan), ("gold", gold)):
        if found.carried:
            told[f"resolved_{name}"] = found.program
            operations = expanded_operations(found.program)
            # The division that converts percent to the gold's unit is not an operation of the plan.
            told[f"resolved_{name}_operations"] = operations[:-1] if in_percent and name == "plan" else operations
            told[f"resolved_{name}_literals"] = literal_values(found.program)
    return told
