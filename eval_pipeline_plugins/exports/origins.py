"""What every export of scores tells: who answered, with which settings, and the scores of a turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN
from eval_pipeline.reports.contents.facts import provenance_of, settings_of
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.shown import NO_ROLE, messages_of

CORRECT = "correct"
"""Name of the score that is the verdict."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score of a turn.

    Attributes:
        value: None for a label, and where the metric failed.
        label: of a verdict `correct` or `incorrect`; of other numbers None.
        explanation: why it is what it is; None if nothing is told.
        version: of the metric; None of the verdict, which is one of the metrics.
        failed: whether the metric failed on this turn.
    """

    name: str
    value: float | None
    label: str | None = None
    explanation: str | None = None
    version: str | None = None
    failed: bool = False


def scores_of(evaluation: Evaluation, turn: Row) -> Iterator[Score]:
    """Yields the verdict, then every metric that applies to the turn."""
    if turn["correct"] is not None:
        label = "correct" if turn["correct"] else "incorrect"
        yield Score(CORRECT, float(turn["correct"]), label, reason_of(turn))
    for name, told in turn["metrics"].items():
        value, label, error = told["value"], told.get("label"), told.get("error")
        if value is not None or label is not None or error:
            yield Score(
                name, None if error else value, label, error or told.get("reason"), told["version"], bool(error)
            )


def reason_of(turn: Row) -> str | None:
    """Returns why a turn is not right: its error class, and the message."""
    message = turn["attempts"][-1]["error_message"] if turn["attempts"] else None
    return ": ".join(filter(None, [turn["error_class"], message])) or None


def model_of(evaluation: Evaluation) -> tuple[str, str]:
    """Returns provider and name of the model that answered; of recorded answers what their provenance says."""
    model = evaluation.model
    if not model["recorded"]:
        return str(model["provider"]), str(model["model"] or evaluation.partition.model_version)
    provider, _, name = str(provenance_of(evaluation).get("model") or UNKNOWN).rpartition("/")
    return provider or UNKNOWN, name


def asked_with(evaluation: Evaluation) -> Mapping[str, Any]:
    """Returns the sampling settings of the answers, as far as they are known."""
    if evaluation.model["recorded"]:
        return provenance_of(evaluation).get("sampling") or {}
    settings = settings_of(evaluation)
    return {**settings.get("sampling", {}), "max_tokens": settings.get("max_tokens")}


def asked_messages(attempt: Row, question: str) -> tuple[list[tuple[str, str]], bool]:
    """Returns role and text of what was asked, and whether nobody told that, so that it is the suite's question."""
    prompt = attempt["prompt"] or UNKNOWN
    if prompt.startswith(UNKNOWN) and PROVENANCE in attempt:
        return [("user", question)], True
    return [("user" if said.role == NO_ROLE else said.role, said.text) for said in messages_of(prompt)], False
