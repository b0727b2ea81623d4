"""Lints reference code: finds clocks, and ties that it cuts (docs/gold.md#lint)."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline.tracks.capabilities import Contradiction
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasCase, PandasGold
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.robust.variants import kept_at, once
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import DIFFERENT, judged
from eval_pipeline_plugins.tracks.pandas_code.running.execute import runnable
from eval_pipeline_plugins.tracks.pandas_code.running.runner import OWN_CODE_S, sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.ties import other_ties

SCORES = {"clock": 0.3, "cut_tie": 0.3}
"""Kind of finding → how likely the code is wrong, 0..1, chosen by judgement for sorting."""
_CLOCKS = frozenset({"now", "today", "utcnow", "time_ns", "gmtime", "localtime"})
_DATES = frozenset({"Timestamp", "to_datetime", "datetime64"})


def contradictions(case: PandasCase) -> list[Contradiction]:
    """Returns turns whose reference code reads the clock or cuts ties, except for kinds that the case has as tags.

    Raises:
        NoSandboxError: this machine cannot run it.
    """
    found = ((turn.id, kind, told) for turn in case.turns for kind, told in _findings(turn.gold))
    kept = ((name, kind, told) for name, kind, told in found if kind not in case.tags)
    return [Contradiction(name, f"{kind}: {told}", SCORES[kind], linted=True) for name, kind, told in kept]


def _findings(gold: PandasGold) -> Iterator[tuple[str, str]]:
    if gold.code is None:
        return
    with suppress(SyntaxError):  # code that is only whole within its template
        if (read := next(clocks(gold.code), None)) is not None:
            yield "clock", f"it reads {read}: its result is kept from the day on which it first ran, answers run later"
        elif (told := _other_result(gold)) is not None:
            yield "cut_tie", f"it cuts rows that are tied: breaking ties the other way gives another result: {told}"


def clocks(code: str) -> Iterator[str]:
    """Yields the expressions of Python code that read the clock."""
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        of_time = (
            name == "time" and isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "time"
        )
        if of_time or (name in _CLOCKS and not words) or (name in _DATES and {"now", "today"} & set(words)):
            yield ast.unparse(node)


def _other_result(gold: PandasGold) -> str | None:
    """Returns how the rows differ, in any order, if ties are broken the other way; None if they do not.

    It is found once, and kept in `$EVAL_HOME/expected`.
    """
    assert gold.code is not None
    if gold.answers or gold.tests is not None or "stable" in gold.code:  # a stable sort means the order of the table
        return None
    if not other_ties(gold.code):
        return None
    found = once(str(find_home().expected / kept_at(gold, "ties", gold.stored)), _differences, gold)
    return str(found[0]) if found else None


def _differences(gold: PandasGold) -> list[Json]:
    """Returns how the result of the first code that breaks ties another way differs; empty if none does."""
    of_rows = replace(gold, ordered=False, order_keys=())
    for code in other_ties(gold.code or ""):
        found = sandbox(gold.context.layer).run(
            runnable(code, gold.context), dict(gold.context.paths), wall_s=OWN_CODE_S
        )
        if isinstance(found, SnippetFailed):
            continue
        verdict, _, details = judged(of_rows, Code(code), {"result": found.result})
        if verdict == DIFFERENT:
            return [str(details["message"])]
    return []
