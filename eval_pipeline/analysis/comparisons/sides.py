"""The evaluations that are compared, and what is known of each."""

from dataclasses import dataclass

from eval_pipeline.analysis.comparisons.evaluations import Evaluated
from eval_pipeline.analysis.comparisons.references import Known
from eval_pipeline.workspace.scope import FULL


@dataclass(frozen=True, slots=True)
class Side:
    """One evaluation in a comparison.

    Attributes:
        evaluated: what is compared.
        known: by what it is chosen and named.
    """

    evaluated: Evaluated
    known: Known

    @classmethod
    def of(cls, evaluated: Evaluated) -> "Side":
        """Returns the side of an evaluation on record."""
        place = evaluated.partition
        return cls(evaluated, Known(place.model_version, place.eval_date, evaluated.scope == FULL))

    @property
    def suite(self) -> str:
        """Name of the suite."""
        return self.evaluated.partition.suite
