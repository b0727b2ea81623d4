"""The kinds of variants, i.e. the ways in which the chosen rows are changed."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline.variants.inside.building import Recipe, Tables, build, changed_columns
from eval_pipeline.variants.inside.choosing import Rng, by_conditions, by_group, by_values, narrowed, partners
from eval_pipeline.variants.inside.facts import Facts, Hints, read_facts
from eval_pipeline.variants.inside.sketch import Sketch

_Change = Callable[[list[Sketch], Hints, Rng], None]
_FACTORS = (3, 7)
_VALUES = "named values"
_MANY = "many rows"


def derive(tables: Tables, hints: Hints) -> Iterator[tuple[dict[str, Any], Tables]]:
    """Yields variants of tables, each `{"kind": name, "tables": recipes by table}`, with the tables.

    They are determined by the hints.
    """
    facts = read_facts(tables, hints)
    several = len(facts) > 1
    small = all(len(one.frame) <= _SMALL for one in facts)
    for number, (kind, rows, group_first, change) in enumerate(KINDS):
        if number in _OF_SMALL_TABLES and not small:
            continue
        if (kind == "unmatched keys" and not several) or (kind == _MANY and not hints["many"]):
            continue
        rng = np.random.default_rng([hints["seed"], number])
        sketches = _chosen(facts, hints, rows, group_first, rng)
        if kind == _VALUES and not _take_values(sketches, hints, rows, rng):
            continue
        change(sketches, hints, rng)
        recipes = {sketch.facts.name: sketch.recipe(rng) for sketch in sketches}
        built = _built(tables, recipes)
        if built is not None:
            yield {"kind": kind, "tables": recipes}, built


def _built(tables: Tables, recipes: dict[str, Recipe]) -> Tables | None:
    """Returns the tables; None if they cannot be built or do not keep their dtypes."""
    try:
        built = build(tables, recipes)
    except Exception:
        return None
    changed = [(name, column) for name, recipe in recipes.items() for column in changed_columns(recipe)]
    kept = all(built[name][column].dtype == tables[name][column].dtype for name, column in changed)
    return built if kept else None


def _chosen(facts: list[Facts], hints: Hints, count: int, group_first: bool, rng: Rng) -> list[Sketch]:
    """Returns a sketch of each table; rows of the largest table are chosen first."""
    found: list[Sketch] = []
    joined = [column for pair in hints["keys"] for column in pair]
    for one in sorted(facts, key=lambda one: -len(one.frame)):
        if not found:
            rows = _first_rows(one, hints, count, group_first, rng)
            rows = narrowed(one, rows, joined, rng) if joined and count > 2 else rows
        else:
            known = [(c, s.key_values(c)) for s in found for c in joined if c in s.facts.frame.columns]
            rows = partners(one, known, hints, max(1, count), rng)
        found.append(Sketch(one, rows))
    return found


def _first_rows(facts: Facts, hints: Hints, count: int, group_first: bool, rng: Rng) -> list[int]:
    if group_first and facts.groups and count > 2:
        column = facts.groups[int(rng.integers(len(facts.groups)))]
        counts = [size for n in hints["counts"] for size in (n - 1, n, n + 1) if size > 0]
        sizes = counts or [int(size) for size in rng.integers(2, 9, size=4)]
        if rows := by_group(facts, column, sizes, rng):
            return rows
    return by_conditions(facts, count, rng)


def _take_values(sketches: list[Sketch], hints: Hints, count: int, rng: Rng) -> bool:
    """Replaces the rows of tables that contain several of the named values; returns whether there is such a table."""
    found = [(sketch, by_values(sketch.facts, hints["texts"], count, rng)) for sketch in sketches]
    for sketch, rows in found:
        sketch.rows = rows or sketch.rows
    return any(rows for _, rows in found)


def _as_they_are(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Leaves all cells unchanged."""


def _boundaries(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Makes conditions hold in most rows, and puts rows at the boundary of one of them."""
    for sketch in sketches:
        conditions = sketch.facts.conditions
        for row in range(len(sketch.rows) if conditions else 0):
            aim = int(rng.integers(len(conditions) + 1))
            for place, condition in enumerate(conditions):
                if place == aim:
                    if rng.random() < 0.7:
                        sketch.at_boundary(row, condition, rng)
                    else:
                        sketch.flip(row, condition, False, rng)
                elif rng.random() < 0.8:
                    sketch.flip(row, condition, True, rng)


def _missing(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Removes values in columns that also lack some in the original tables."""
    for sketch in sketches:
        for column in sketch.facts.nullable:
            empty = np.flatnonzero(sketch.facts.frame[column].isna())
            for row in np.flatnonzero(rng.random(len(sketch.rows)) < 0.3):
                sketch.copy_cells(int(row), [column], rng.choice(empty))


def _ties(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Gives rows the values of other rows in single columns."""
    for sketch in sketches:
        for column in sketch.facts.columns:
            for row in np.flatnonzero(rng.random(len(sketch.rows)) < 0.15):
                sketch.copy_cells(int(row), [column], sketch.rows[int(rng.integers(len(sketch.rows)))])


def _duplicates(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Repeats rows of tables without unique columns; in other tables, copies everything but the unique columns."""
    for sketch in sketches:
        some = [sketch.rows[int(row)] for row in rng.integers(len(sketch.rows), size=max(1, len(sketch.rows) // 4))]
        if not sketch.facts.unique:
            sketch.rows += some
            continue
        free = [column for column in sketch.facts.frame.columns if column not in sketch.facts.unique]
        for row, position in enumerate(some):
            sketch.copy_cells(row, free, position)


def _unmatched(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Leaves out rows of the smaller tables, and adds other ones."""
    for sketch in sketches[1:]:
        kept = [row for row in sketch.rows if rng.random() < 0.6]
        others = [int(row) for row in rng.integers(len(sketch.facts.frame), size=3)]
        sketch.rows = list(dict.fromkeys(kept + others)) if sketch.facts.unique else kept + others


def _empty(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Makes one condition false for all rows but one."""
    for sketch in sketches:
        if sketch.facts.conditions:
            condition = sketch.facts.conditions[int(rng.integers(len(sketch.facts.conditions)))]
            for row in range(1, len(sketch.rows)):
                sketch.flip(row, condition, False, rng)


def _scaled(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Multiplies numbers that are neither keys nor compared with anything."""
    keys = {column for pair in hints["keys"] for column in pair} | set(hints["groups"])
    for sketch in sketches:
        compared = {column for condition in sketch.facts.conditions for column in condition.columns}
        for column in sketch.facts.columns:
            dtype = sketch.facts.frame[column].dtype
            number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
            if number and column not in keys | compared | sketch.facts.unique:
                sketch.scale[column] = int(rng.choice(_FACTORS))


def _later(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Moves all dates by the same number of days."""
    days = int(rng.integers(17, 75))
    for sketch in sketches:
        for column in sketch.facts.columns:
            if pd.api.types.is_datetime64_any_dtype(sketch.facts.frame[column].dtype):
                sketch.shift[column] = days


def _mixed(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    _boundaries(sketches, hints, rng)
    _missing(sketches, hints, rng)
    _ties(sketches, hints, rng)


KINDS: tuple[tuple[str, int, bool, _Change], ...] = (
    ("rows", 40, False, _as_they_are),
    ("rows", 24, False, _as_they_are),
    ("groups", 40, True, _as_they_are),
    ("groups", 40, True, _as_they_are),
    ("groups", 30, True, _boundaries),
    ("boundaries", 40, False, _boundaries),
    ("boundaries", 30, False, _boundaries),
    ("boundaries", 16, False, _boundaries),
    ("boundaries", 60, False, _boundaries),
    ("missing values", 40, False, _missing),
    ("missing values", 30, True, _missing),
    ("ties", 30, False, _ties),
    ("ties", 20, True, _ties),
    ("duplicates", 30, False, _duplicates),
    ("unmatched keys", 40, False, _unmatched),
    ("unmatched keys", 30, True, _unmatched),
    ("empty groups", 20, False, _empty),
    ("one row", 1, False, _boundaries),
    ("other scale", 30, False, _scaled),
    ("other dates", 30, True, _later),
    ("mixed", 40, False, _mixed),
    ("mixed", 40, True, _mixed),
    (_VALUES, 40, False, _as_they_are),
    (_VALUES, 24, False, _as_they_are),
    (_MANY, 600, False, _as_they_are),
    (_MANY, 600, False, _boundaries),
    (_MANY, 600, False, _missing),
    (_MANY, 600, False, _ties),
)
"""Name, rows, whether whole groups are chosen first, and what is done to the cells."""
_SMALL = 30
_OF_SMALL_TABLES = frozenset({1, 3, 4, 6, 8, 9, 11, 20})
"""Places of those that are made only where no table has more than `_SMALL` rows, since many of the others are alike."""
