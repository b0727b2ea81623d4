"""Shows what an evaluation of drawn cases says about the whole suite."""

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.draws import drawn_text
from eval_pipeline.store.tables import SAMPLED_ESTIMATES
from eval_pipeline.view.published import Look


def drawn(look: Look, partition: Partition) -> str:
    """Returns the estimate in words; empty unless the evaluation's cases were drawn."""
    if not look.columns(SAMPLED_ESTIMATES.name):  # the store was made by an older version
        return ""
    key = [partition.suite, partition.model_version, partition.eval_date]
    rows = look.rows("SELECT * FROM sampled_estimates WHERE suite = ? AND model_version = ? AND eval_date = ?", key)
    return drawn_text(rows)
