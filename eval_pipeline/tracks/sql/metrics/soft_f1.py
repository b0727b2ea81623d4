"""How much of the result is right."""

from eval_pipeline.tracks.metric import Metric


def soft_f1(generated: str | None, execution: str | None, cell_f1: float | None, should_pass: bool) -> float | None:
    """Returns the F1 score over the result's cells, with rows matched as well as possible; 0 if there is no result."""
    if not should_pass or execution == "no_data":
        return None
    if generated is None or cell_f1 is None:
        return 0.0
    return cell_f1


METRIC = Metric(
    "soft_f1",
    soft_f1,
    "score",
    "F1 over the cells of the result, rows matched best, 0..1; 0 where it does not run; NULL as execution_match.",
)
