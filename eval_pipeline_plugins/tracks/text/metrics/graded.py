"""The metrics `set_f1`, `json_fields` and `rouge_l`: how much of the expected answer was given."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from functools import lru_cache
from typing import Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.comparing.matching import compared_fields, f1, items_of, share_equal

Said = Mapping[str, Any] | None
_MOST_CHARS = 20_000
"""The most characters of a text for ROUGE-L, whose time grows with the product of both lengths."""


def set_f1(said: Said, expected: Sequence[Json], options: TextOptions) -> float | None:
    """Returns the F1 of given and expected items, the best over the accepted answers."""
    if options.parameters("set_f1") is None or said is None:
        return None if options.parameters("set_f1") is None else 0.0
    given = items_of(said["answer"], with_signs=not any("&" in json_text(right) for right in expected))
    return max((f1(given, items_of(right)) for right in expected), default=0.0)


def json_fields(said: Said, expected: Sequence[Json], options: TextOptions) -> float | None:
    """Returns the share of equal fields in given and expected answer, the best over the accepted answers."""
    rules = options.parameters("json_fields")
    if rules is None or said is None:
        return None if rules is None else 0.0
    return max((share_equal(compared_fields(said["answer"], right, rules.fields)) for right in expected), default=0.0)


def rouge_l(said: Said, expected: Sequence[Json], options: TextOptions) -> float | None:
    """Returns the ROUGE-L F-measure (Lin 2004, package rouge-score), the best over the accepted answers."""
    rules = options.parameters("rouge_l")
    if rules is None or said is None:
        return None if rules is None else 0.0
    scorer = _scorer(rules.stemming)
    given = str(said["answer"])[:_MOST_CHARS]
    scores = (float(scorer.score(str(right)[:_MOST_CHARS], given)["rougeL"].fmeasure) for right in expected)
    return max(scores, default=0.0)


@lru_cache(maxsize=2)
def _scorer(stemming: bool) -> Any:
    try:
        # Its logging keeps the stream it finds on import and closes it when logging is set up anew, as each run does.
        # A notebook's stream must not be closed; the process's own never is.
        with redirect_stderr(sys.__stderr__):
            from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise UsageError(
            "the metric rouge_l needs the package rouge-score: pip install 'eval-pipeline[rouge]'"
        ) from error
    return RougeScorer(["rougeL"], use_stemmer=stemming)
