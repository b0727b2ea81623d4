"""Reads BigCodeBench (bigcode-project/bigcodebench): JSON lines of programs to complete, with unittest classes.

Only tasks are read that use pandas or numpy, and no other packages than these, matplotlib and the standard library.
Solutions that do not pass if the tests run in another process are found when the suite is made, listed, and left out.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field, field_validator

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects

_ABOUT = frozenset({"pandas", "numpy"})
_USABLE = _ABOUT | {"matplotlib"} | sys.stdlib_module_names
_RUN = """
import unittest as _unittest
_ran = _unittest.TestResult()
_unittest.defaultTestLoader.loadTestsFromTestCase(TestCases).run(_ran)
for _test, _why in [*_ran.errors, *_ran.failures]:
    raise AssertionError(f"{_test.id().rpartition('.')[2]}: {_why.strip().splitlines()[-1]}")
assert _ran.testsRun, "there are no tests"
"""


class _Task(BaseModel):
    model_config = FOREIGN
    task_id: str = Field(min_length=1)
    complete_prompt: str = Field(min_length=1)
    canonical_solution: str = Field(min_length=1)
    test: str = Field(min_length=1)
    libs: tuple[str, ...]

    @field_validator("libs", mode="before")
    @classmethod
    def _listed(cls, told: object) -> object:
        """Returns the list that is published as a text: `"['pandas', 'numpy']"`."""
        if not isinstance(told, str):
            return told
        try:
            return ast.literal_eval(told)
        except (ValueError, SyntaxError) as error:
            raise ValueError("expected a list of packages") from error


def read_bigcodebench(source: Path, limit: int | None) -> Iterator[dict[str, Json]]:
    """Yields cases in the suite's file format, in the order of the file. Raises InputError naming line and field.

    Args:
        source: the published file.
        limit: maximum number of tasks about pandas or numpy.
    """
    tasks = (task for task in checked(_Task, source, json_objects(source), None) if _fits(task))
    for number, task in enumerate(tasks):
        if limit is not None and number >= limit:
            return
        turn: dict[str, Json] = {
            "question": f"Complete this program:\n```python\n{task.complete_prompt.rstrip()}\n```",
            "code": f"{task.complete_prompt.rstrip()}\n{task.canonical_solution}",
            "tests": f"{task.test.strip()}\n{_RUN}",
        }
        yield {"id": re.sub(r"\W+", "_", task.task_id).lower(), "tables": [], "turns": [turn]}


def _fits(task: _Task) -> bool:
    packages = {name.partition(".")[0] for name in task.libs}
    return bool(packages & _ABOUT) and packages <= _USABLE
