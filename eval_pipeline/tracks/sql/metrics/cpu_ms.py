"""The CPU time that the query takes."""

from eval_pipeline.tracks.metric import Metric


def cpu_ms(generated_ms: float | None) -> float | None:
    """Returns the CPU time, the least of five runs."""
    return generated_ms


METRIC = Metric(
    "cpu_ms",
    cpu_ms,
    "count",
    "Milliseconds of CPU time of the query, least of five runs in turns with the expected one; NULL where it is not "
    "right.",
)
