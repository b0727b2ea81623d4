"""The evaluations that are compared, and what is known of each."""

from dataclasses import dataclass

from eval_pipeline.analysis.comparisons.chosen.references import KnownEvaluation
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.workspace.asked.scope import FULL
from eval_pipeline.workspace.evaluations import EvaluationRun

SUITE_PROMPT = "suite_prompt"
"""Setting of a model version with a prompt: the prompt's name."""


@dataclass(frozen=True, slots=True)
class Side:
    """One evaluation in a comparison.

    Attributes:
        evaluated: what is compared.
        told: what it was made of.
    """

    evaluated: CompleteEvaluation
    told: EvaluationRun

    @property
    def known(self) -> KnownEvaluation:
        """By what it is chosen and named."""
        found, told, place = self.evaluated, self.told, self.evaluated.partition
        file = found.held.file if found.held is not None else ""
        prompt = str(told.settings.get(SUITE_PROMPT) or "")
        is_full = found.scope == FULL
        return KnownEvaluation(
            place.model_version, place.eval_date, is_full, told.id, told.begun_at, told.newest, prompt=prompt, file=file
        )

    def served_change(self, before: "Side") -> str | None:
        """Describes how the models differ that answered the two."""
        return self.evaluated.served.change(before.evaluated.served)

    @property
    def suite(self) -> str:
        """Name of the suite."""
        return self.evaluated.partition.suite
