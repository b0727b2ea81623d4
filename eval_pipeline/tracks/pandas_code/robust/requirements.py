"""The requirements of a turn, i.e. what mutants of its reference code drop or alter, and the results of each mutant."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.robust.variants import kept_at, outcomes_on, variants_of
from eval_pipeline.variants.mutants import Known, Mutant, mutants_of

_AT_ONCE = 6
"""Mutants that are run in one process of the sandbox, so that its time limit is kept."""


@dataclass(frozen=True, slots=True)
class Gives:
    """The results of a mutant of the reference code on the variants of a turn's tables.

    Attributes:
        results: one result for each variant, as tagged plain data; None if there is no result.
    """

    mutant: Mutant
    results: tuple[Json, ...]


def known_of(gold: PandasGold) -> Known:
    """Returns the columns of a turn's tables with their dtypes and examples."""
    columns = [column for table in gold.context.tables for column in table.columns]
    tables = {table.name: {one.name: one.dtype for one in table.columns} for table in gold.context.tables}
    return Known(tables, {column.name: column.examples for column in columns})


@lru_cache(maxsize=512)
def turn_mutants(gold: PandasGold) -> tuple[Mutant, ...]:
    """Returns the mutants of a turn's reference code; none if there is no reference code."""
    return () if gold.code is None else tuple(mutants_of(gold.code, known_of(gold)))


def requirement_count(mutants: Sequence[Mutant]) -> int:
    """Returns how many requirements the mutants drop or alter."""
    return len({mutant.requirement for mutant in mutants})


@lru_cache(maxsize=512)
def mutants_on_variants(gold: PandasGold) -> tuple[Gives, ...]:
    """Returns the results of each mutant on the variants; they are computed once and kept in `$EVAL_HOME/expected`.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    mutants, variants = turn_mutants(gold), variants_of(gold)
    if not mutants or not variants:
        return ()
    place = find_home().expected / kept_at(gold, "mutants", [mutant.code for mutant in mutants])
    if (text := read_sealed(place)) is not None:
        columns = parse_json(text)
    else:
        columns = results_of(gold, [mutant.code for mutant in mutants], [one.tables for one in variants])
        write_sealed(place, json_text(columns))
    return tuple(Gives(mutant, tuple(results)) for mutant, results in zip(mutants, columns, strict=True))


def results_of(gold: PandasGold, codes: Sequence[str], variants: Sequence[Json]) -> list[list[Json]]:
    """Returns the results of each trusted code by variant; a variant without recipes stands for the given tables."""
    found: list[list[Json]] = []
    for start in range(0, len(codes), _AT_ONCE):
        some = codes[start : start + _AT_ONCE]
        rows = outcomes_on(gold, variants, some)
        found += [[row[place] for row in rows] for place in range(len(some))]
    return found
