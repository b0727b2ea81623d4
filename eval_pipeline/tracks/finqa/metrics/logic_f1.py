"""F1 of the operations: recall and precision of the logic in one number."""

from eval_pipeline.tracks.metric import Metric


def logic_f1(logic_recall: float | None, logic_precision: float | None) -> float | None:
    """Returns the harmonic mean of recall and precision; None without a parsed plan."""
    if logic_recall is None or logic_precision is None:
        return None
    total = logic_recall + logic_precision
    return 2 * logic_recall * logic_precision / total if total else 0.0


METRIC = Metric(
    "logic_f1",
    logic_f1,
    "score",
    "Harmonic mean of logic_recall and logic_precision, 0..1; NULL without a parsed plan.",
)
