"""Finds the mistake in a wrong answer's code: by comparing it with the reference code, or by trying corrections."""

import ast
import difflib
from collections.abc import Callable

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox import SnippetRan
from eval_pipeline.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.failures.modes import OF_ASPECT, OF_KIND, Failure
from eval_pipeline.tracks.pandas_code.results.structure import differences
from eval_pipeline.tracks.pandas_code.robust.requirements import known_of
from eval_pipeline.tracks.pandas_code.runner import sandbox
from eval_pipeline.variants.mutants import mutants_of

_ALIKE = 0.6
"""Share of a line's characters that are the same where a line is an altered one."""
_MOST_MENDED = 12
_MEND_S = 3.0


def failure_beside_reference(code: str, reference: str) -> Failure | None:
    """Returns the mistake in code that differs from the reference code in one aspect of one line; None for others."""
    mine, theirs = parse(code), parse(reference)
    if mine is None or theirs is None:
        return None
    lines = ast.unparse(mine).splitlines(), ast.unparse(theirs).splitlines()
    differing = [pair for pair in zip(*lines, strict=False) if pair[0] != pair[1]]
    aspects = differences(code, reference)
    if len(lines[0]) != len(lines[1]) or len(differing) != 1 or len(aspects) != 1:
        return None
    one, other = differing[0]
    if difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() < _ALIKE:
        return None
    (aspect,) = aspects
    mode = "wrong_boundary" if _strict(one) == _strict(other) else OF_ASPECT[aspect]
    return Failure(mode, f"the reference code with this line altered: {one.strip()[:120]}")


def _strict(line: str) -> str:
    return line.replace("<=", "<").replace(">=", ">")


def failure_by_mending(gold: PandasGold, code: str, is_right: Callable[[Json], bool]) -> Failure | None:
    """Returns the mistake in code that becomes right when one of its own requirements is altered.

    Args:
        gold: the turn's gold, with the tables.
        code: the answer's code; its mutants are run in the sandbox.
        is_right: judges a result in tagged JSON.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    if parse(code) is None:
        return None
    for mutant in mutants_of(code, known_of(gold))[:_MOST_MENDED]:
        found = sandbox(gold.context.layer).run(mutant.code, gold.context.paths, wall_s=_MEND_S)
        if isinstance(found, SnippetRan) and is_right(found.result):
            return Failure(OF_KIND[mutant.kind], f"the answer is right as soon as {mutant.words}")
    return None
