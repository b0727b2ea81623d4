"""The metrics `exact_match`, `number_match` and `choice_match`: whether the extracted answer is the expected one."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.answers.mentions import QuotableText
from eval_pipeline.answers.wording import asks_for_more, says_less
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.text.cases.settings import Exact, TextOptions
from eval_pipeline_plugins.tracks.text.comparing.matching import same_number, same_text

Said = Mapping[str, Any] | None


def exact_match(said: Said, expected: Sequence[Json], options: TextOptions) -> bool | None:
    """Returns whether the answer is an expected one: texts by the rules of the suite, numbers and JSON by value."""
    rules = options.parameters("exact")
    return None if rules is None else said is not None and any(_same(said, right, rules, options) for right in expected)


def number_match(
    said: Said, expected: Sequence[Json], options: TextOptions, sources: Sequence[QuotableText]
) -> bool | None:
    """Returns whether the number is within the tolerance of an expected one.

    `A decrease of 5` is -5 where that is expected, and no rise of 5 where the question asks for one.
    """
    rules = options.parameters("number")
    if rules is None:
        return None
    factors = (1.0, 100.0, 0.01) if rules.percent_or_fraction else (1.0,)
    if said is None:
        return False
    number, falls = said["answer"], says_less(said["section"], said["answer"])
    if number > 0 and falls and sources and asks_for_more(sources[0].text):
        return False
    return any(
        same_number(
            (-number if falls and right < 0 < number else number) * factor, right, rules.absolute, rules.relative
        )
        for right in expected
        for factor in factors
    )


def choice_match(said: Said, expected: Sequence[Json], options: TextOptions) -> bool | None:
    """Returns whether the one label that the answer gives is an expected one."""
    return None if options.parameters("choice") is None else said is not None and said["answer"] in expected


def _same(said: Mapping[str, Any], right: Json, rules: Exact, options: TextOptions) -> bool:
    answer = said["answer"]
    if isinstance(right, list) and isinstance(answer, str):
        return same_text(answer, ", ".join(map(str, right)), rules)
    if isinstance(right, str) and isinstance(answer, str):
        # For labels the section must be exactly the label; `choice` also finds it in a sentence.
        section = said["section"] or answer
        texts = {section, *((section.strip(" \n*_`"),) if options.answer.form == "text" else ())}
        return any(same_text(text, right, rules) for text in texts)
    if isinstance(right, float) and isinstance(answer, float | int):
        return same_number(answer, right, 0.0, 1e-12)
    return canonical_json(answer) == canonical_json(right)
