"""Reads DS-1000 (xlang-ai/DS-1000) in its simplified form of April 2024: JSON lines, packed by gzip or not.

A model writes the part of a program that is missing at `[insert]`. `code_context` of a problem defines that program as
`exec_context`, makes inputs and expected results, and checks. It runs as the tests, outside the model's process: its
calls of `exec` run the program there, and `test_string` gets the text of the answer.

Only the problems of the libraries that the sandbox has are read. Reference code that does not pass with the current
versions of these libraries is found when the suite is made, listed, and left out.
"""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field, model_validator

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.template import PLACE, template_problem

LIBRARIES = ("Pandas", "Numpy")
_PROGRAM = "exec_context"
_RUN = """

def exec(program, names):
    names["result"] = run_program(**names)

test_execution(answer_text)
"""
_RUN_ON_TEXT = "test_string(answer_text)\n"
_TEXT_TEST = "test_string"
_OPENING = "BEGIN SOLUTION"


class _Metadata(BaseModel):
    model_config = FOREIGN
    problem_id: int
    library: str = Field(min_length=1)
    perturbation_type: str = ""
    perturbation_origin_id: int | None = None


class _Problem(BaseModel):
    model_config = FOREIGN
    prompt: str = Field(min_length=1)
    reference_code: str = Field(min_length=1)
    code_context: str = Field(min_length=1)
    metadata: _Metadata

    @model_validator(mode="after")
    def _has_a_program(self) -> "_Problem":
        if self.metadata.library in LIBRARIES:
            _program_of(self.code_context)
        return self


def read_ds1000(source: Path, limit: int | None) -> Iterator[dict[str, Json]]:
    """Yields cases in the suite's file format, in the order of the file. Raises InputError naming line and field.

    Args:
        source: the published file, `ds1000.jsonl.gz`, or the same unpacked.
        limit: maximum number of problems about the libraries in `LIBRARIES`.
    """
    problems = checked(_Problem, source, json_objects(source), None)
    yield from (_case(one) for one in [one for one in problems if one.metadata.library in LIBRARIES][:limit])


def _case(problem: _Problem) -> dict[str, Json]:
    about = problem.metadata
    library = about.library.lower()
    origin = about.problem_id if about.perturbation_origin_id is None else about.perturbation_origin_id
    turn: dict[str, Json] = {
        "question": _question(problem.prompt),
        "code": textwrap.dedent(problem.reference_code).strip("\n"),
        "template": _program_of(problem.code_context),
        "tests": _tests(problem.code_context),
    }
    features: dict[str, Json] = {"library": library}
    if about.perturbation_type:
        features["perturbation"] = about.perturbation_type
    return {
        "id": f"ds1000_{about.problem_id:04}",
        "tables": [],
        "turns": [turn],
        "tags": [library],
        "cluster": f"{library}_{origin}",  # variations of one problem are not independent
        "features": features,
    }


def _question(prompt: str) -> str:
    """Returns the prompt without the opening of a code block at its end, which asks for a continuation of the text."""
    lines = prompt.rstrip().splitlines()
    while lines and (lines[-1].strip() in ("", "<code>") or lines[-1].strip(" #") == _OPENING):
        lines.pop()
    return "\n".join(lines) or prompt


def _tests(context: str) -> str:
    tree = parse(context)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] if tree is not None else []
    return context.strip("\n") + _RUN + (_RUN_ON_TEXT if _TEXT_TEST in names else "")


def _program_of(context: str) -> str:
    """Returns the program that the code of the tests calls `exec_context`. Raises a ValueError if there is none."""
    tree = parse(context)
    for node in [] if tree is None else tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() as text)) if name == _PROGRAM:
                if problem := template_problem(text):
                    raise ValueError(f"'{_PROGRAM}' in 'code_context' {problem}")
                return text
    raise ValueError(f"expected Python that defines '{_PROGRAM}', a text with a line '{PLACE}', in 'code_context'")
