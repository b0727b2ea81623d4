"""The metrics of other tools: whether they would call the answer right, and whether one of them differs."""

from collections.abc import Sequence

from eval_pipeline.answers import other_readers
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown
from eval_pipeline_plugins.tracks.text.metrics import FORMS_OF_OTHER_TOOLS


def right_by_lm_eval_strict(response_text: str, expected: Sequence[Json], options: TextOptions) -> bool | None:
    """Returns the verdict of lm-eval's strict filter for numbers."""
    if options.answer.form != "number":
        return None
    return any(other_readers.lm_eval_strict(response_text, answer_shown(right)) for right in expected)


def right_by_lm_eval_flexible(response_text: str, expected: Sequence[Json], options: TextOptions) -> bool | None:
    """Returns the verdict of lm-eval's flexible filter for numbers."""
    if options.answer.form != "number":
        return None
    return any(other_readers.lm_eval_flexible(response_text, answer_shown(right)) for right in expected)


def right_by_inspect(response_text: str, expected: Sequence[Json], options: TextOptions) -> bool | None:
    """Returns the verdict of Inspect's `match`."""
    if options.answer.form not in FORMS_OF_OTHER_TOOLS:
        return None
    numeric = options.answer.form == "number"
    return any(other_readers.inspect_match(response_text, answer_shown(right), numeric=numeric) for right in expected)


def right_by_promptfoo(response_text: str, expected: Sequence[Json], options: TextOptions) -> bool | None:
    """Returns the verdict of promptfoo's `icontains`."""
    if options.answer.form not in FORMS_OF_OTHER_TOOLS:
        return None
    return any(other_readers.promptfoo_icontains(response_text, answer_shown(right)) for right in expected)


def read_otherwise(
    answer_correct: bool | None,
    right_by_lm_eval_flexible: bool | None,
    right_by_inspect: bool | None,
    right_by_promptfoo: bool | None,
) -> bool | None:
    """Returns whether a tool that does not ask for a form of its own has another verdict than this one."""
    theirs = [found for found in (right_by_lm_eval_flexible, right_by_inspect, right_by_promptfoo) if found is not None]
    return None if answer_correct is None or not theirs else any(found != answer_correct for found in theirs)
