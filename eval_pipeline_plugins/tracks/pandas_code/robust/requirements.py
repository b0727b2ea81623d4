"""The requirements of a turn, i.e. what mutants of its reference code drop or alter."""

from collections.abc import Iterable
from functools import lru_cache

from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import (
    Known,
    Mutant,
    mutants_of,
    normal,
    requirement_count,
)


def known_of(gold: PandasGold) -> Known:
    """Returns the columns of a turn's tables with their dtypes and examples."""
    columns = [column for table in gold.context.tables for column in table.columns]
    tables = {table.name: {one.name: one.dtype for one in table.columns} for table in gold.context.tables}
    return Known(tables, {column.name: column.examples for column in columns})


@lru_cache(maxsize=512)
def turn_mutants(gold: PandasGold) -> tuple[Mutant, ...]:
    """Returns the mutants of a turn's reference code; none if there is no reference code."""
    return () if gold.code is None else tuple(mutants_of(gold.code, known_of(gold)))


@lru_cache(maxsize=512)
def normal_mutants(gold: PandasGold) -> tuple[Mutant, ...]:
    """Returns the mutants of a turn's reference code in the normal form."""
    return tuple(mutants_of(normal_code(gold, str(gold.code)), known_of(gold)))


def are_ours(gold: PandasGold, codes: Iterable[str]) -> bool:
    """Whether all codes are mutants of a turn's reference code that are made by rule, whatever any answer is."""
    left = {*codes}.difference(one.code for one in turn_mutants(gold))
    return not left or left.issubset(one.code for one in normal_mutants(gold))


@lru_cache(maxsize=256)
def normal_code(gold: PandasGold, code: str) -> str:
    """Returns code that parses in the normal form, for the tables of a turn."""
    return normal(code, {name for names in gold.context.columns.values() for name in names})


def turn_requirements(gold: PandasGold) -> int:
    """Returns how many requirements the reference code has; at least two: its data, and what it does with them."""
    assert gold.code is not None
    return max(2, requirement_count(normal_code(gold, gold.code), known_of(gold)))
