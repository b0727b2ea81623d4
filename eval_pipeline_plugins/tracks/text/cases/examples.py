"""Checks the options of a suite, including its few-shot examples."""

from collections.abc import Mapping

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.options import read_options
from eval_pipeline_plugins.tracks.text.cases.case_file import read_gold
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.cases.template import TemplateError, render


def checked_options(options: Mapping[str, Json], place: str) -> TextOptions:
    """Returns the checked options of `suite.yaml`.

    Raises:
        InputError: names each invalid field, including examples that do not fit template or answer form.
    """
    found = read_options(TextOptions, options, place)
    problems = []
    for index, example in enumerate(found.examples):
        where = f"options.examples.{index}"
        try:
            read_gold(example.answer, found.answer)
        except ValueError as error:
            problems.append(Problem(place, None, f"{where}.answer", str(error)))
        try:
            render(found.prompt.template, {**example.fields, "question": example.question})
        except TemplateError as error:
            problems.append(Problem(place, None, f"{where}.fields", f"options.prompt.template: {error}"))
    if problems:
        raise InputError(problems)
    return found
