"""Checks code before it runs."""

import ast

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.base import ArtefactError, ValidationRow
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasContext
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code

RESULT = "result"
KNOWN_MODULES = frozenset(
    {"pandas", "polars", "numpy", "math", "re", "datetime", "collections", "itertools", "functools"}
)


def validate(artefact: Code | None, error: ArtefactError | None, context: PandasContext) -> ValidationRow:
    """Returns `invalid` if there is no code or it does not parse, `suspicious` if it does not set `result`.

    Imports other than `KNOWN_MODULES` are noted; only the sandbox decides whether they exist and what they may do.
    """
    if artefact is None:
        return ValidationRow(False, "invalid", {}, ("there is no response" if error is None else error.message,))
    if artefact.answer is not None:
        return ValidationRow(True, "valid", {"closed_answer": True}, ())
    tree = parse(artefact.code)
    if tree is None:
        return ValidationRow(True, "invalid", {"parses": False}, ("the code is not Python",))
    sets_result = any(
        isinstance(node, ast.Name) and node.id == RESULT and isinstance(node.ctx, ast.Store) for node in ast.walk(tree)
    )
    other: list[Json] = sorted(_modules(tree) - KNOWN_MODULES)
    checks: dict[str, Json] = {"parses": True, "sets_result": sets_result, "other_modules": other}
    if artefact.notes:
        checks["notes"] = list(artefact.notes)
    if context.sets_result and context.output is None and not sets_result:
        return ValidationRow(True, "suspicious", checks, ("nothing is assigned to `result`",))
    return ValidationRow(True, "valid", checks, ())


def _modules(tree: ast.AST) -> set[str]:
    """Returns the modules that code imports, by the first part of their names."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}
