"""Runs code on variants of tables in the sandbox, and reads what it tells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.system.stopped import note_stopped
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import are_equal
from eval_pipeline_plugins.tracks.pandas_code.results.forms import OF_FORM, Form
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import are_ours
from eval_pipeline_plugins.tracks.pandas_code.running.runner import OWN_CODE_S, sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.snippets import examine_snippet, run_snippet
from eval_pipeline_plugins.tracks.pandas_code.variants.steps import leaves_nothing

_FEW = 5
"""Variants that are run together where all of them took longer than a snippet may."""
_AT_ONCE = 6
"""Codes that are run in one process of the sandbox, so that its time limit is kept."""


def outcomes_on(
    gold: PandasGold, variants: Sequence[Mapping[str, Json]], codes: Sequence[str], *, ours: bool = False
) -> list[list[Json]]:
    """Runs codes on variants, all in one process of the sandbox.

    Args:
        gold: the turn's gold.
        variants: recipes by table.
        codes: the codes.
        ours: whether they are the reference code and what is made of it by rule.

    Returns:
        For each variant the result of each code as tagged plain data; None if the code has no result there.
    """
    if not variants:
        return []
    text = run_snippet([*gold.context.paths], [dict(one) for one in variants], codes)
    nothing = ours and leaves_nothing(codes, [*gold.context.paths])
    found = sandbox(gold.context.layer).run(text, gold.context.paths, leaves_nothing=nothing)
    if isinstance(found, SnippetFailed):
        if found.error_class is ErrorClass.TIMEOUT and len(variants) > _FEW:
            # All together took too long, which on a crowded machine is no fault of the code.
            parts = [variants[start : start + _FEW] for start in range(0, len(variants), _FEW)]
            return [row for part in parts for row in outcomes_on(gold, part, codes, ours=ours)]
        return [[None] * len(codes) for _ in variants]
    rows = listed(found.result.get("value") if isinstance(found.result, dict) else None)
    if len(rows) != len(variants):  # the code has tampered with what runs it
        return [[None] * len(codes) for _ in variants]
    return [[told_result(one) for one in _padded(listed(row), len(codes))] for row in rows]


def results_of(gold: PandasGold, codes: Sequence[str], variants: Sequence[Json]) -> list[list[Json]]:
    """Returns the results of each trusted code by variant; a variant without recipes stands for the given tables."""
    found: list[list[Json]] = []
    for start in range(0, len(codes), _AT_ONCE):
        some = codes[start : start + _AT_ONCE]
        rows = outcomes_on(gold, variants, some)
        found += [[row[place] for row in rows] for place in range(len(some))]
    return found


def shared_results(
    gold: PandasGold, codes: Sequence[str], variants: Sequence[Json], *, again: bool = True
) -> list[list[Json]]:
    """Returns the same as `results_of`; what several codes compute is computed once.

    All run in one process of the sandbox. If that takes too long, or too much, the halves are run apart (if `again`),
    and codes of a half that does so too have no results.
    """
    if not codes or not variants:
        return [[None] * len(variants) for _ in codes]
    found = examined_on(gold, variants, [gold.code or ""], codes)
    if found is None:
        if again:
            halves = codes[: len(codes) // 2], codes[len(codes) // 2 :]
            return [row for half in halves for row in shared_results(gold, half, variants, again=False)]
        return [[None] * len(variants) for _ in codes]
    return [[row[place] for row in found.mutants] for place in range(len(codes))]


@dataclass(frozen=True, slots=True)
class Examined:
    """What trusted code gives, as `examine_snippet` says; each result as tagged plain data, None if there is none."""

    orders: list[list[Json]]
    tied: list[list[Json]]
    parts: list[list[Json]]
    mutants: list[list[Json]]


def examined_on(
    gold: PandasGold, variants: Sequence[Json], codes: Sequence[str], mutants: Sequence[str], **more: Sequence[Json]
) -> Examined | None:
    """Runs trusted code in one process of the sandbox, arguments as for `examine_snippet`; None if that failed."""
    text = examine_snippet([*gold.context.paths], variants, codes, mutants, **more)
    wall_s = None if mutants else OWN_CODE_S  # what an answer had a part in may never end
    # Other mutants may have parts of an answer.
    nothing = are_ours(gold, mutants) and leaves_nothing([*codes, *mutants], [*gold.context.paths])
    found = sandbox(gold.context.layer).run(text, gold.context.paths, wall_s=wall_s, leaves_nothing=nothing)
    if isinstance(found, SnippetFailed):
        return None
    told, *parts = listed(found.result["value"])
    results = [told_result(one) for one in listed(told)]
    return Examined(*([[results[place] for place in listed(row)] for row in listed(part)] for part in parts))


def same(gold: PandasGold, returned: Json, expected: Json) -> bool:
    """Whether a result equals the expected one, by the same rules of comparison as for the tables of the case."""
    return _same(gold, returned, expected, lambda form: form)


def same_in_any_order(gold: PandasGold, one: Json, other: Json) -> bool:
    """Whether results are the same, those with one value for each row of a table also if these are in another order."""
    return _same(gold, one, other, lambda form: replace(form, by_row=False))


def behaves_alike(gold: PandasGold, one: Json, other: Json) -> bool:
    """Whether two codes do the same: results that say the same in another form, but neither more nor less."""
    return _same(gold, one, other, lambda form: replace(form, overlooked=form.overlooked & OF_FORM))


def _same(gold: PandasGold, returned: Json, expected: Json, asked: Callable[[Form], Form]) -> bool:
    if returned is None:
        return False
    if returned is expected or json_text(returned) == json_text(expected):  # which is much faster to find out
        return True
    return are_equal(returned, expected, ordered=gold.ordered, order_keys=gold.order_keys, form=asked(gold.form))


def listed(told: Json) -> list[Json]:
    """Returns the items of a list in tagged plain data; none if the data are something else."""
    return list(told["v"]) if isinstance(told, dict) and told.get("t") == "list" else []


def _padded(items: list[Json], count: int) -> list[Json]:
    return (items + [None] * count)[:count]


def told_result(outcome: Json) -> Json:
    """Returns the result in `["ran", result]`, None for any other outcome."""
    match listed(outcome):
        case ["failed", "MemoryError" | "TimeoutError" | "OSError" | "PermissionError"]:
            note_stopped()
        case ["ran", dict() as told] if told.get("t") == "table":
            return told["v"]
        case ["ran", told]:
            return {"kind": "value", "value": told}
    return None
