"""Evaluation of language models on data work: accuracy with intervals, failures, and what a right answer costs.

For notebooks: `import eval_pipeline as ep; ep.load()`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from eval_pipeline.store.loading import Frames

__version__ = "0.1.0"


def load(what: "str | None" = None, *, home: "str | Path | None" = None) -> "pd.DataFrame | Frames":
    """Results as pandas DataFrames, from the published store; also while a run writes.

    >>> import eval_pipeline as ep
    >>> ep.load()                                        # the leaderboard of every suite
    >>> ep.load("model_comparisons")                     # a table or view of the store
    >>> ep.load("finqa_sample")["answers"]               # of a suite: newest evaluations, a DataFrame a table
    >>> ep.load("finqa_sample/my-model/2026-01-15")["turn_results"]   # of one evaluation; without the date the newest

    Args:
        what: a table or view, a suite, or an evaluation as above; the leaderboard if left out.
        home: the folder that runs write to, or a store's file; `EVAL_HOME` or the project's `.eval/` if left out.

    Returns:
        A DataFrame; of a suite or evaluation a mapping of names to DataFrames, each read when it is asked for. Missing
        integers and truths are `pd.NA`, JSON columns are text.

    Raises:
        eval_pipeline.core.errors.EvalError: there is no store, or it has nothing of that name; says what it has.
    """
    from eval_pipeline.store.loading import load as loaded

    return loaded(what, home=home)
