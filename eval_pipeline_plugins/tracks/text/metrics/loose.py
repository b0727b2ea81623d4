"""The metrics `contains_match` and `regex_match`.

They test whether the answer section asserts the expected answer, instead of denying or quoting it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.answers.mentions import QuotableText
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.comparing.matching import MatchTarget, contains, finds


def contains_match(
    said: Mapping[str, Any] | None, expected: Sequence[Json], options: TextOptions, sources: Sequence[QuotableText]
) -> bool | None:
    """Returns whether the section contains an expected text as its answer."""
    rules = options.parameters("contains")
    if rules is None or said is None:
        return None if rules is None else False
    asked = MatchTarget(expected, options.answer, sources)
    return contains(said["section"], asked, ignore_case=rules.ignore_case)


def regex_match(
    said: Mapping[str, Any] | None, expected: Sequence[Json], options: TextOptions, sources: Sequence[QuotableText]
) -> bool | None:
    """Returns whether the suite's pattern matches in the section and its group is an expected answer."""
    rules = options.parameters("regex")
    if rules is None or said is None:
        return None if rules is None else False
    asked = MatchTarget(expected, options.answer, sources)
    return finds(said["section"], asked, rules.pattern, ignore_case=rules.ignore_case)
