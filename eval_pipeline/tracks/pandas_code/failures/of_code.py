"""Finds the mistake in a wrong answer's code without reference code, by trying corrections."""

from collections.abc import Callable

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox import SnippetRan
from eval_pipeline.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.failures.modes import OF_KIND, Failure
from eval_pipeline.tracks.pandas_code.robust.requirements import known_of
from eval_pipeline.tracks.pandas_code.runner import sandbox
from eval_pipeline.variants.mutants import mutants_of

_MOST_MENDED = 12
_MEND_S = 3.0


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
