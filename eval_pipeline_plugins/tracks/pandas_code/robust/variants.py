"""Makes the variants of a turn's tables with the right result on each; done once, kept in `$EVAL_HOME/expected`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import libraries
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import read_result
from eval_pipeline_plugins.tracks.pandas_code.robust.running import (
    listed,
    outcomes_on,
    same,
    same_in_any_order,
    told_result,
)
from eval_pipeline_plugins.tracks.pandas_code.running.runner import OWN_CODE_S, sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.hints import read_hints
from eval_pipeline_plugins.tracks.pandas_code.variants.holes import other_holes
from eval_pipeline_plugins.tracks.pandas_code.variants.snippets import derive_snippet
from eval_pipeline_plugins.tracks.pandas_code.variants.steps import leaves_nothing
from eval_pipeline_plugins.tracks.pandas_code.variants.ties import other_ties

_ORDERS = 2
"""Outcomes of the reference code with its rows in other orders, before those of code that breaks ties."""
VERSION = 12
"""Raised when the same code on the same tables comes to give other variants."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Tables derived from the given ones, and the reference code's result on them.

    Attributes:
        kind: what was done to the tables, a name of `variants.inside.kinds.KINDS`.
        tables: recipe of each table.
        expected: the result as tagged plain data.
    """

    kind: str
    tables: Mapping[str, Json]
    expected: Json


def kept_at(gold: PandasGold, what: str, *more: Json) -> str:
    """Returns the file name in `$EVAL_HOME/expected` for something computed from a turn's gold."""
    tables = {table.name: table.content_hash for table in gold.context.tables}
    versions = [*libraries()]
    if gold.context.layer is not None:
        versions.append(gold.context.layer.folder.name)
    told = [VERSION, what, gold.code, gold.ordered, list(gold.order_keys), *gold.form.key, tables, versions, *more]
    if gold.context.unique or gold.context.may_be_empty:
        told.append([_unique(gold), gold.context.may_be_empty])
    return f"{what}-{json_hash(told)}.json"


def known_candidates(gold: PandasGold) -> list[Json]:
    """Returns the candidates as plain data; `determined` is whether the result is, None if that is not known yet."""
    if gold.code is None or gold.answers or gold.tests is not None or not gold.context.tables or gold.context.output:
        return []
    return once(str(find_home().expected / kept_at(gold, "variants")), _derived, gold)


@lru_cache(maxsize=2048)
def once(place_text: str, work: Callable[[PandasGold], list[Json] | None], gold: PandasGold) -> list[Json]:
    """Returns what is kept in a file, or the result of the work, which is kept; empty if it has none."""
    place = Path(place_text)
    if (text := read_sealed(place)) is not None:
        return list(parse_json(text))
    found = work(gold)
    if found is None:
        return []
    write_sealed(place, json_text(found))
    return found


def _derived(gold: PandasGold) -> list[Json] | None:
    """Returns the candidates; None if the sandbox could not make them."""
    assert gold.code is not None
    columns = {name for names in gold.context.columns.values() for name in names}
    tables = {table.name: table.content_hash for table in gold.context.tables}
    hints = read_hints(gold.code, columns, json_hash(tables))
    others, codes = _other_holes(gold), tie_breaking(gold)
    if others is None or codes is None:
        return None
    # Where empty groups decide nothing, it takes many rows to have none.
    hints |= {"many": bool(others), "unique": _unique(gold), "may_be_empty": gold.context.may_be_empty}
    text = derive_snippet([*gold.context.paths], hints, codes)
    nothing = leaves_nothing(codes, [*gold.context.paths])
    found = sandbox(gold.context.layer).run(text, gold.context.paths, wall_s=OWN_CODE_S, leaves_nothing=nothing)
    if isinstance(found, SnippetFailed):
        return None
    variants_text, told = listed(found.result["value"])
    rows = [[told_result(one) for one in listed(row)] for row in listed(told)]
    return [
        {**variant, "expected": first, "determined": _determined(gold, first, others) if others else None}
        for variant, (first, *others) in zip(parse_json(variants_text), rows, strict=True)
        if is_decided(gold, first)
    ]


def _unique(gold: PandasGold) -> dict[str, Json]:
    """Returns by table the columns whose values are all different, alone or together, as the case says."""
    return {table: [[*columns] for columns in several] for table, several in gold.context.unique}


@lru_cache(maxsize=64)
def tie_breaking(gold: PandasGold) -> tuple[str, ...] | None:
    """Returns the reference code, and code that means the same but treats ties, or empty groups, in another way.

    None if the sandbox could not find out which does.
    """
    assert gold.code is not None
    others = _other_holes(gold)
    return None if others is None else (gold.code, *other_ties(gold.code), *others)


@lru_cache(maxsize=64)
def _other_holes(gold: PandasGold) -> list[str] | None:
    """Returns code that treats empty groups in another way.

    There is none where the given tables have empty groups too, or the case says that there may be some. None if the
    sandbox could not run the reference code.
    """
    assert gold.code is not None
    others = [] if gold.context.may_be_empty else other_holes(gold.code)
    if not others:
        return []
    first, *results = outcomes_on(gold, [{}], [gold.code, *others], ours=True)[0]
    if first is None:
        return None
    return [other for other, one in zip(others, results, strict=True) if one is not None and same(gold, one, first)]


def _determined(gold: PandasGold, first: Json, others: Sequence[Json]) -> bool:
    return is_determined(gold, first, others[:_ORDERS], others[_ORDERS:])


def is_determined(gold: PandasGold, first: Json, orders: Sequence[Json], ties: Sequence[Json]) -> bool:
    """Whether the result of the reference code does not depend on the order of rows and ties.

    Args:
        gold: the turn's gold.
        first: the result.
        orders: the results with the rows in other orders.
        ties: the results of code that breaks ties in other ways.
    """
    # Code that breaks ties in another way is made by rule, and may fail where the reference code does not.
    return all(same_in_any_order(gold, one, first) for one in [*orders, *(one for one in ties if one is not None)])


def is_decided(gold: PandasGold, result: Json) -> bool:
    """Whether there is a result; one without rows, or with only missing values, depends on conventions."""
    if result is None or gold.context.may_be_empty:
        return result is not None
    table = read_result(result)
    return any(cell is not None for column in table.columns for cell in column.cells)
