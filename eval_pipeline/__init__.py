"""Evaluation of language models on data work: accuracy with intervals, failures, and what a right answer costs.

From Python: `import eval_pipeline as ep`, then `ep.run`, `ep.load`, `ep.compare` and `ep.score` (docs/python-api.md).
What they need is imported when they are called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from pathlib import Path
    from typing import Any

    import pandas as pd

    from eval_pipeline.api.running import Run
    from eval_pipeline.api.scoring import Scores
    from eval_pipeline.store.published.loading import Frames

__version__ = "0.2.0"
__all__ = ["__version__", "compare", "load", "run", "score"]


def run(
    suite: "str | Sequence[str] | None" = None,
    model_version: "str | Sequence[str] | None" = None,
    *,
    home: "str | Path | None" = None,
    data: "str | Path | None" = None,
    sample_size: "int | None" = None,
    seed: int = 0,
    cases: "Sequence[str]" = (),
    tags: "Sequence[str]" = (),
    failed: bool = False,
    until: "str | None" = None,
    eval_date: "date | str | None" = None,
    fresh: bool = False,
    canary: bool = True,
    report: bool = False,
    max_cost: "float | None" = None,
) -> "Run":
    """Evaluates model versions on suites; results that are up to date are not made again.

    >>> import eval_pipeline as ep
    >>> found = ep.run("finqa_sample", "simulated-weak")
    >>> found.ok, found.table()

    Args:
        suite: name of a suite, or several; all if left out.
        model_version: name of a model version, or several; all active ones if left out.
        home: the folder that runs write to; `EVAL_HOME` or the project's `.eval/` if left out.
        data: the folder with suites and model versions; `EVAL_DATA` or the project's `data/` if left out.
        sample_size: only this many conversations, drawn at random by `seed`.
        seed: random seed for drawing `sample_size` conversations, and for the draw of `until`.
        cases: only these cases.
        tags: only cases with one of these tags.
        failed: only cases that failed in the latest full run.
        until: ask only until this holds: `±2pp`, `decided-against BASELINE` or `budget 5usd` (docs/adaptive.md).
        eval_date: logical date of the evaluation; today if left out.
        fresh: ask the models anew instead of using journalled responses.
        canary: stop where hardly any of the first answers can be read.
        report: write the report files too.
        max_cost: the most that everything may cost together, models and judges, in US dollars; what does not fit is not
            asked. `EVAL_MAX_COST_USD` if left out.

    Returns:
        The outcome: the evaluations, their headlines, and what went wrong. A failed check or model call is reported as
        a sentence in `problems` and does not raise an error.

    Raises:
        eval_pipeline.core.errors.EvalError: the request cannot be carried out, such as an unknown name.
    """
    from eval_pipeline.api.running import run as ran

    return ran(
        suite,
        model_version,
        home=home,
        data=data,
        part=(sample_size, seed, cases, tags, failed),
        until=until,
        eval_date=eval_date,
        fresh=fresh,
        canary=canary,
        report=report,
        max_cost=max_cost,
    )


def compare(
    *models: str,
    suite: "str | Sequence[str] | None" = None,
    home: "str | Path | None" = None,
    data: "str | Path | None" = None,
) -> "pd.DataFrame":
    """Compares evaluations turn by turn.

    >>> ep.compare("simulated-weak", "simulated-strong", suite="finqa_sample")[["difference", "verdict"]]
    >>> ep.compare("my-model@before", "my-model")       # what its last change did

    Args:
        models: two or more model versions, each standing for its latest evaluation, or other references: `NAME@DATE`,
            `NAME@before`, the id of an evaluation, a baseline file. Of each pair the one that is named first is a.
        suite: name of a suite, or several; all if left out.
        home: as in `run`.
        data: as in `run`.

    Returns:
        A row for each suite and pair, with the columns of the table `model_comparisons`, names that tell evaluations
        of one model version apart (`name_a`, `name_b`), and ids of evaluations.

    Raises:
        eval_pipeline.core.errors.EvalError: an unknown name, or no suite that two of them were evaluated on.
    """
    from eval_pipeline.api.running import compare as compared

    return compared(models, suite, home=home, data=data)


def score(
    suite: "str | Path | Sequence[Mapping[str, Any]]",
    answers: "Mapping[str, Any] | Iterable[Mapping[str, Any]] | pd.DataFrame",
    *,
    track: "str | None" = None,
    data: "str | Path | None" = None,
) -> "Scores":
    """Scores answers that were made elsewhere. Needs no home and leaves nothing behind.

    Code in an answer runs only in the sandbox. Cases without any answer are left out; in a conversation with some
    answers, the turns without an answer count as wrong.

    >>> answer = '{"plan": [{"tool": "extract", "value": 412.5}]}'
    >>> found = ep.score("finqa_sample", {"alder_freight_2021_fuel#0": answer})
    >>> found.accuracy, found.to_pandas("turn_results")

    Args:
        suite: name of a suite of the project or of a shipped sample, the folder of a suite, or cases in the form of a
            suite's case files.
        answers: responses by turn (`case#0`), or by case for its first turn; or rows as `import predictions` takes them
            (docs/recorded-answers.md), as mappings or as a DataFrame.
        track: the track of cases that are given without a suite, such as `finqa`.
        data: the folder in whose `suites/` a name is looked up; `EVAL_DATA` or the project's `data/` if left out.

    Returns:
        Accuracy with its interval, and tables by turn.

    Raises:
        eval_pipeline.core.errors.EvalError: the suite cannot be read, or an answer is for a turn that it does not have.
    """
    from eval_pipeline.api.scoring import score as scored

    return scored(suite, answers, track=track, data=data)


def load(
    what: "str | None" = None, model_version: "str | None" = None, *, home: "str | Path | None" = None
) -> "pd.DataFrame | Frames":
    """Loads results from the published store as pandas DataFrames; works while a run is writing, too.

    >>> import eval_pipeline as ep
    >>> ep.load()                                        # the leaderboard of every suite
    >>> ep.load("model_comparisons")                     # a table or view of the store
    >>> ep.load("finqa_sample")["answers"]               # of a suite: newest evaluations, one DataFrame per table
    >>> ep.load("finqa_sample", "my-model").arrow("answers")   # as an Arrow table
    >>> ep.load("finqa_sample/my-model/2026-01-15")["turn_results"]   # of one evaluation; without the date the newest

    Args:
        what: a table or view, a suite, or an evaluation as above; by default the leaderboard.
        model_version: if `what` is a suite, only its newest evaluation of this model version.
        home: the folder that runs write to, or a store file; by default `EVAL_HOME` or the project's `.eval/`.

    Returns:
        A DataFrame; for a suite or evaluation, a mapping of names to DataFrames, each read on first access. Missing
        integers and booleans are `pd.NA`; JSON columns are text.

    Raises:
        eval_pipeline.core.errors.EvalError: there is no store, or it has nothing of that name; the message lists what
            it has.
    """
    from eval_pipeline.api.homes import loaded

    return loaded(what, model_version, home)
