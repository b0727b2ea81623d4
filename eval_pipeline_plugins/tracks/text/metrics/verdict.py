"""The metrics `answer_correct` and `answer_score`: the result of the suite's deciding metric."""

from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions


def answer_score(
    options: TextOptions,
    exact_match: bool | None,
    number_match: bool | None,
    choice_match: bool | None,
    contains_match: bool | None,
    regex_match: bool | None,
    set_f1: float | None,
    json_fields: float | None,
    rouge_l: float | None,
    judge_score: float | None,
) -> float | None:
    """Returns the value of the deciding metric."""
    by_name = {
        "exact": exact_match,
        "number": number_match,
        "choice": choice_match,
        "contains": contains_match,
        "regex": regex_match,
        "set_f1": set_f1,
        "json_fields": json_fields,
        "rouge_l": rouge_l,
        "judge": judge_score,
    }
    found = by_name[options.deciding]
    return None if found is None else float(found)


def answer_correct(options: TextOptions, answer_score: float | None) -> bool | None:
    """Returns whether the deciding metric is 1, or at least the suite's threshold if it has one."""
    if answer_score is None:
        return None
    return answer_score >= getattr(options.parameters(options.deciding), "threshold", 1.0)
