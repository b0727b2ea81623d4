"""The track `finqa`: conversational financial question answering."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Attempt, ErrorClass, Evidence, Failed, Json, Outcome, Ran
from eval_pipeline.core.numbers import number_text
from eval_pipeline.tracks.base import Executor, Task
from eval_pipeline.tracks.capabilities import (
    Audits,
    Converses,
    Damageable,
    Executes,
    Explains,
    Gathers,
    Mutates,
    Recovers,
    Validates,
)
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline_plugins.tracks.finqa import FinqaManifest
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, FinqaCase, FinqaGold, FinqaTurn
from eval_pipeline_plugins.tracks.finqa.conversation import (
    NOTHING_BEFORE,
    own_values,
    prediction,
)
from eval_pipeline_plugins.tracks.finqa.metrics.logic import partial_credit
from eval_pipeline_plugins.tracks.finqa.programs.execute import result_json, run_program
from eval_pipeline_plugins.tracks.finqa.programs.matching import answers_match
from eval_pipeline_plugins.tracks.finqa.programs.program import Program
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan, plan_json
from eval_pipeline_plugins.tracks.finqa.responses.prose import Quantity, in_units_of
from eval_pipeline_plugins.tracks.finqa.responses.recorded import (
    AS_WRITTEN,
    NO_CALCULATION,
    REASONING,
    not_comparable,
    recorded_response,
)
from eval_pipeline_plugins.tracks.finqa.responses.refusals import refuses

if TYPE_CHECKING:
    from eval_pipeline.tracks.scored.mutation_score import TurnMutants


class _Executor:
    """Runs plans in this process, since they can only do arithmetic."""

    immediate: ClassVar[bool] = True

    async def execute(self, artefact: FinqaPlan, case: FinqaCase) -> Outcome:
        return run_plan(artefact, case.context)


def run_plan(plan: FinqaPlan, document: Document) -> Outcome:
    """Returns the outcome of a plan. A recorded answer is the prediction itself; its calculation is not run."""
    if plan.form == "recorded" and plan.answer is not None:
        answer = plan.answer
        if plan.magnitude != 1 and not isinstance(answer, str):
            try:
                answer = in_units_of(document.text, Quantity(answer, plan.magnitude))
            except ValueError as error:
                return Failed(ErrorClass.VALUE, str(error))
        return Ran({"text": answer} if isinstance(answer, str) else result_json(answer.value, answer.percent))
    program = plan.program or Program(())
    return run_program(program, document.table)


def _finite(number: float) -> float | None:
    return number if isfinite(number) else None


class FinqaTrack(
    FinqaManifest,
    Task[Document, FinqaGold, FinqaPlan],
    Executes,
    Validates[Document, FinqaGold, FinqaPlan],
    Gathers[Document, FinqaGold, FinqaPlan],
    Recovers,
    Converses[Document, FinqaGold, FinqaPlan],
    Damageable[Document, FinqaGold],
    Audits[Document, FinqaGold],
    Mutates[Document, FinqaGold],
    Explains[Document, FinqaGold, FinqaPlan],
):
    """See `tracks.base.Task` and `tracks.capabilities`."""

    gold_fields: tuple[str, ...] = ("program", "answer", "printed")
    strict_metrics: tuple[str, ...] = ("exact_match", "program_match")

    contradictions = Later("eval_pipeline_plugins.tracks.finqa.cases.audit:printed_contradictions")
    weights = Later("eval_pipeline_plugins.tracks.finqa.cases.witnesses:weights")
    prompt_parts = Later("eval_pipeline_plugins.tracks.finqa.prompt:prompt_parts")
    parse = Later("eval_pipeline_plugins.tracks.finqa.responses.artefact:parse_plan")
    artefact_json = Later("eval_pipeline_plugins.tracks.finqa.responses.plan:plan_json")
    artefact_from_json = Later("eval_pipeline_plugins.tracks.finqa.responses.plan:plan_from_json")
    validate = Later("eval_pipeline_plugins.tracks.finqa.responses.validator:validate_plan")
    conversation_values = Later("eval_pipeline_plugins.tracks.finqa.conversation:conversation_values")
    cards = Later("eval_pipeline_plugins.tracks.finqa.cards:turn_cards")
    recorded_text = Later("eval_pipeline_plugins.tracks.finqa.responses.recorded:as_given")

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: None = None) -> FinqaCase:
        """See `case_file.read_case`."""
        from eval_pipeline_plugins.tracks.finqa.cases import case_file

        return case_file.read_case(raw, suite, file, line)

    def check_gold(self, case: FinqaCase) -> list[tuple[FinqaTurn, str]]:
        """Returns the turns whose program does not give their answer."""
        from eval_pipeline_plugins.tracks.finqa.cases.gold import gold_problem

        found = ((turn, gold_problem(turn.gold)) for turn in case.turns)
        return [(turn, problem) for turn, problem in found if problem is not None]

    def turn_mutants(self, case: FinqaCase, turn: FinqaTurn) -> "TurnMutants | None":
        """See `mutants.turn_mutants_score`."""
        from eval_pipeline_plugins.tracks.finqa.mutants import turn_mutants_score

        return turn_mutants_score(turn)

    def answer_keys(self, turn: FinqaTurn, results: Sequence[Json]) -> list[str]:
        """See `audit.answer_keys`."""
        from eval_pipeline_plugins.tracks.finqa.cases.audit import answer_keys

        return answer_keys(results)

    def expected_text(self, turn: FinqaTurn) -> str:
        """Returns the expected answer as computed."""
        return turn.gold.expected_text()

    def expected_printed(self, turn: FinqaTurn) -> str | None:
        """Returns the expected answer as printed in the filing."""
        return turn.gold.printed

    def gold_json(self, turn: FinqaTurn) -> Json:
        """Returns the gold as in the suite's file."""
        return {"program": turn.gold.program_text, "answer": turn.gold.expected, "printed": turn.gold.printed}

    def gold_complexity(self, turn: FinqaTurn) -> int:
        """Returns the number of operations of the gold program as written."""
        return turn.gold.written_operations

    def context_json(self, case: FinqaCase) -> Json:
        """Returns the page: text, table, text."""
        document = case.context
        return {
            "pre_text": document.pre_text,
            "table": [list(row) for row in document.table],
            "post_text": document.post_text,
        }

    def executor(self) -> AbstractAsyncContextManager[Executor]:
        """Returns an interpreter, which needs no resources."""
        return _executor()

    def answer_text(self, value: Json) -> str:
        """Returns the answer for display: `{"value": 0.25, "percent": true}` becomes 25%."""
        if "text" in value:
            return str(value["text"])
        number = float(value["value"])
        return f"{number_text(number * 100)}%" if value.get("percent") else number_text(number)

    def gather(self, case: FinqaCase, turn: FinqaTurn, final: Attempt[FinqaPlan]) -> tuple[Evidence, ...]:
        """Returns one piece of evidence of kind `value`: equal, different or no_value by the rule of `numerical_match`.

        Its number is the relative difference |p - e| / |e|; None for texts, for an expected answer of 0, and on
        overflow.
        """
        gold = turn.gold
        predicted, percent = prediction(final)
        difference = relative = None
        if isinstance(predicted, float) and isinstance(gold.expected, float):
            difference = _finite(abs(predicted - gold.expected))
            if difference is not None and gold.expected:
                relative = _finite(difference / abs(gold.expected))
        verdict = "different"
        if predicted is None:
            verdict = "no_value"
        elif answers_match(predicted, gold.expected):
            verdict = "equal"
        details: dict[str, Json] = {
            "predicted": predicted,
            "percent": percent,
            "expected": gold.expected,
            "expected_printed": gold.printed,
            "absolute_difference": difference,
        }
        return (Evidence(turn.id, final.sample, "value", verdict, relative, details),)

    def values(
        self, case: FinqaCase, turn: FinqaTurn, attempts: Sequence[Attempt[FinqaPlan]], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """Returns the values for the metrics.

        `no_answer` means that no attempt gave any text; `failed`, that the final attempt did not run. The reasoning
        values come from the final attempt's plan, even if it failed to run.
        """
        gold = turn.gold
        final = attempts[-1]
        predicted, percent = prediction(final)
        return {
            "predicted": predicted,
            "predicted_percent": percent,
            "expected": gold.expected,
            "expected_printed": gold.printed,
            "printed_number": gold.printed_number,
            "no_answer": not any(a.response is not None and a.response.text.strip() for a in attempts),
            "failed": not isinstance(final.outcome, Ran),
            "turn_index": turn.index,
            "refused": refuses(final),
            "document": case.context,
            **own_values(final, gold, case.context),
            **NOTHING_BEFORE,
            "attempts_outcomes": attempt_outcomes(attempts),
        }

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns `partial_credit`; without a plan, reasoning earns nothing, so a right answer counts a third."""
        graded: float | None = metrics["partial_credit"]
        return partial_credit(0.0, 0.0, metrics["numerical_match"]) if graded is None else graded

    def turn_row(self, case: FinqaCase, turn: FinqaTurn, attempts: Sequence[Attempt[FinqaPlan]]) -> Mapping[str, Json]:
        """Returns case features, the gold program, the printed answer and the final plan."""
        gold = turn.gold
        plan = attempts[-1].artefact if attempts else None
        return {
            **case.features,
            "ground_truth_program": gold.program_text,
            "expected_printed": gold.printed,
            "plan": None if plan is None else plan_json(plan),
        }

    def oracle(self, turn: FinqaTurn) -> str:
        """Returns the gold program as a plan."""
        from eval_pipeline_plugins.tracks.finqa.cases.gold import gold_response

        return gold_response(turn.gold)

    def cheats(self, case: FinqaCase, turn: FinqaTurn) -> Mapping[str, str]:
        """Returns both words where one is right."""
        from eval_pipeline_plugins.tracks.finqa.damage import both_words

        return {} if (text := both_words(turn.gold)) is None else {"all options at once": text}

    def damage(self, case: FinqaCase, turn: FinqaTurn, mode: str, rng: Random) -> str | None:
        """See `damage.damaged_response`."""
        from eval_pipeline_plugins.tracks.finqa.damage import damaged_response

        return damaged_response(turn.gold, case.context, mode, rng)

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """See `recorded.recorded_response`."""
        response = recorded_response(row)
        return response if isinstance(response, str) else canonical_json(response)

    def unreadable(self, turn: FinqaTurn, artefact: FinqaPlan) -> str | None:
        """See `recorded.not_comparable`."""
        return not_comparable(turn.gold, artefact)

    def unscored(self, turn: FinqaTurn, artefact: FinqaPlan) -> Mapping[str, tuple[str, ...]]:
        """Returns the metrics that are NULL if no calculation can be parsed, with the reason.

        For a number a calculation may be guessed, see `guesses`.
        """
        if artefact.program is not None:
            return {}
        return {artefact.problem or NO_CALCULATION: REASONING if isinstance(artefact.answer, str) else AS_WRITTEN}


@asynccontextmanager
async def _executor() -> AsyncIterator[Executor]:
    yield _Executor()


TRACK = FinqaTrack()
