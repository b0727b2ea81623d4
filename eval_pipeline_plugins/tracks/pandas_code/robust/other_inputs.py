"""Runs an answer that is a function, and is judged by tests, on other inputs than those of the tests."""

import ast
import re

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.python_sandbox import Assertions
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.robust.variants import kept_at
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.snippets import inputs_snippet

_CHECKED = re.compile(r"^check\((?P<name>\w+)\)\s*\Z", re.M)
_NONE = "LookupError"
_FIELDS = ("kind", "input", "expected", "returned")


def checked_function(gold: PandasGold) -> str | None:
    """Returns the name of the function that the tests check; None if they check anything else, or need more than the
    answer itself.

    Such tests end with `check(name)`, and the reference code defines the function, as in HumanEval and PandasEval.
    """
    if gold.tests is None or gold.code is None or gold.context.tables or gold.context.template is not None:
        return None
    found = _CHECKED.search(gold.tests)
    try:
        defined = {node.name for node in ast.parse(gold.code).body if isinstance(node, ast.FunctionDef)}
    except SyntaxError:
        return None
    return found["name"] if found is not None and found["name"] in defined else None


def wrong_input(gold: PandasGold, code: str) -> Json:
    """Returns the first other input for which code is wrong.

    Returns:
        `{"kind", "input", "expected", "returned"}` as texts; empty if the code is right for all, None if the tests
        check no function or there is no other input.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    name = checked_function(gold)
    if name is None:
        return None
    place = find_home().expected / kept_at(gold, "inputs", gold.tests, code)
    if (text := read_sealed(place)) is not None:
        return parse_json(text)
    found = _run(gold, name, code)
    write_sealed(place, json_text(found))
    return found


def _run(gold: PandasGold, name: str, code: str) -> Json:
    found = _checked(gold, name, code)
    if found is None:
        return {}
    if found.exception == _NONE and _has_no_other(gold, name):
        return None
    return _told(found.message)


def _checked(gold: PandasGold, name: str, code: str) -> SnippetFailed | None:
    """Returns how code fails on other inputs; None if it is right on all."""
    assert gold.tests is not None
    assert gold.code is not None
    tests = Assertions(inputs_snippet(gold.code, gold.tests, name), gold.code)
    found = sandbox(gold.context.layer).run(code, {}, tests=tests)
    return found if isinstance(found, SnippetFailed) else None


def _has_no_other(gold: PandasGold, name: str) -> bool:
    """Whether there are no other inputs. The reference code is asked: any other code may raise the same exception."""
    assert gold.code is not None
    found = _checked(gold, name, gold.code)
    return found is not None and found.exception == _NONE


def _told(message: str) -> Json:
    """Returns what the check says. Code that ends in another way may have any message, JSON of its own too."""
    try:
        told = parse_json(message)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and told.keys() == set(_FIELDS) and all(isinstance(one, str) for one in told.values()):
        return told
    return {"kind": "", "input": "", "expected": "", "returned": message}
