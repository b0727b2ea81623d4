"""The parts of a prompt: system message, few-shot examples as earlier turns, the question in the suite's template."""

from collections.abc import Sequence
from typing import Final

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json, Message
from eval_pipeline.tracks.texts.prompt_parts import EXAMPLES, PromptParts
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, TextTurn, read_gold
from eval_pipeline_plugins.tracks.text.cases.settings import AnswerForm, Example, TextOptions
from eval_pipeline_plugins.tracks.text.cases.template import render
from eval_pipeline_plugins.tracks.text.comparing.matching import answer_shown

_ASKED: Final = {
    "label": "Answer with exactly one of these labels: {labels}. End with a line of the form\nAnswer: <label>",
    "number": "Answer with one number. End with a line of the form\nAnswer: <number>",
    "text": "Answer the question. End with a line of the form\nAnswer: <your answer>",
    "json": "Answer with JSON and nothing else.{schema}",
}


_TEMPLATE = (Message("system", "{{ system }}"), EXAMPLES, Message("user", "{{ request }}"))
_EARLIER = "conversation"
"""The part with the earlier turns of a case that has several."""
_CONVERSATION = (*_TEMPLATE[:-1], _EARLIER, _TEMPLATE[-1])
_NO_ANSWER = "(no answer)"


def prompt_parts(case: TextCase, turn: TextTurn, history: Sequence[str], version: str) -> PromptParts:
    """Returns the parts of a turn's prompt; the system message and the examples are the same for the whole suite.

    Raises:
        KeyError: the version is not in `prompt_versions`.
        TemplateError: the template cannot be filled in; reading the case has already checked this.
    """
    options = case.context.options
    examples = []
    for example in options.examples:
        question = render(options.prompt.template, {**example.fields, "question": example.question})
        examples += [Message("user", question), Message("assistant", example_response(example, options.answer))]
    earlier = []
    for before, said in zip(case.turns, history, strict=False):
        question = render(options.prompt.template, {**case.context.fields, "question": before.question})
        earlier += [Message("user", question), Message("assistant", said or _NO_ANSWER)]
    has_turns = len(case.turns) > 1
    values = {**case.context.fields, "question": turn.question}
    schema = options.answer.json_schema
    return PromptParts(
        _CONVERSATION if has_turns else _TEMPLATE,
        {
            **{name: found if isinstance(found, str) else json_text(found) for name, found in values.items()},
            "system": {"text-1": system_text}[version](options),
            "form": form_text(options.answer),
            "request": render(options.prompt.template, values),
        },
        {EXAMPLES: examples, _EARLIER: earlier} if has_turns else {EXAMPLES: examples},
        shared=frozenset({"system", "form"}),
        question=("question", "request"),
        answer_schema=schema if schema.get("type") == "object" else None,
    )


def system_text(options: TextOptions) -> str:
    """Returns the suite's system message and the instructions for its answer form."""
    return f"{options.prompt.system.strip()}\n\n{form_text(options.answer)}".strip()


def form_text(form: AnswerForm) -> str:
    """Returns the instructions for an answer form."""
    schema = f" It has to fit this JSON Schema:\n{json_text(form.json_schema)}" if form.json_schema else ""
    return _ASKED[form.form].format(labels=", ".join(form.labels), schema=schema)


def example_response(example: Example, form: AnswerForm) -> str:
    """Returns the answer of an example as a model should write it."""
    return example.response or answer_response(read_gold(example.answer, form), form)


def answer_response(answer: Json, form: AnswerForm) -> str:
    """Returns a right answer in the form that the prompt asks for."""
    return json_text(answer) if form.form == "json" else f"Answer: {answer_shown(answer)}"
