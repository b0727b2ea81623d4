"""The kinds of variants, i.e. the ways in which the chosen rows are changed."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import (
    Recipe,
    Tables,
    build_all,
    build_table,
    changed_columns,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.choosing import (
    Rng,
    by_conditions,
    by_group,
    by_values,
    narrowed,
    partners,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.edges import Edge
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.facts import Facts, Hints, moment_literal, read_facts
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.parts import part
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.sketch import Sketch

_Change = Callable[[list[Sketch], Hints, Rng], None]
_VALUES = "named values"
_NO_ROWS = "no rows"
_MANY = "many rows"
_PERIODS = "ends of periods"
_MOST_ROWS = 600


def derive(tables: Tables, hints: Hints) -> Iterator[tuple[dict[str, Any], Tables]]:
    """Yields variants of tables, each `{"kind": name, "tables": recipes by table}`, with the tables.

    They are determined by the hints.
    """
    facts = read_facts(tables, hints)
    several = len(facts) > 1
    small = all(len(one.frame) <= _SMALL for one in facts)
    found: list[tuple[str, dict[str, Recipe]]] = []
    for number, (kind, rows, group_first, change) in enumerate(KINDS):
        if number in _OF_SMALL_TABLES and not small:
            continue
        if (kind == "unmatched keys" and not several) or (rows == _MOST_ROWS and not hints["many"]):
            continue
        if kind == _NO_ROWS and not hints["may_be_empty"]:
            continue
        if kind == _PERIODS and not any(one.periods for one in facts):
            continue
        if rows > _FEW_ROWS and not _changes_any(change, facts):
            continue
        rng = np.random.default_rng([hints["seed"], number])
        sketches = _chosen(facts, hints, rows, group_first, rng)
        if kind == _VALUES and not _take_values(sketches, hints, rows, rng):
            continue
        change(sketches, hints, rng)
        found.append((kind, {sketch.facts.name: sketch.recipe(rng) for sketch in sketches}))
    yield from _built(found, tables, facts)
    for recipes in _edges(tables, facts, hints):
        yield from _built([("computed edge", recipes)], tables, facts)


def _changes_any(change: _Change, facts: list[Facts]) -> bool:
    """Whether there is anything in the tables that a change is about."""
    return change not in _CHANGED or any(getattr(one, name) for one in facts for name in _CHANGED[change])


def _built(
    found: list[tuple[str, dict[str, Recipe]]], tables: Tables, facts: list[Facts]
) -> Iterator[tuple[dict[str, Any], Tables]]:
    """Yields the variants without those that cannot be built or do not keep what the tables have."""
    together = _as_given(tables, [recipes for _, recipes in found])
    for place, (kind, recipes) in enumerate(found):
        alone = [together[place]] if together else _as_given(tables, [recipes])
        for built in alone:
            for one in facts:
                for columns in one.together:
                    again = built[one.name].duplicated(columns) & built[one.name][columns].notna().all(axis=1)
                    if again.any():
                        recipes[one.name] = part(recipes[one.name], np.flatnonzero(~again).tolist())
                        built[one.name] = build_table(one.frame, recipes[one.name])
            yield {"kind": kind, "tables": recipes}, built


def _as_given(tables: Tables, variants: list[dict[str, Recipe]]) -> list[Tables]:
    """Returns the tables of all variants; none if one cannot be built, or has columns of another type."""
    try:
        built = [*build_all(tables, variants)]
    except Exception:
        return []
    changed = {(name, column) for recipes in variants for name in recipes for column in changed_columns(recipes[name])}
    kept = all(one[name][column].dtype == tables[name][column].dtype for one in built[:1] for name, column in changed)
    return built if kept else []


def _edges(tables: Tables, facts: list[Facts], hints: Hints) -> Iterator[dict[str, Recipe]]:
    """Yields recipes with something computed at the edge with which it is compared, unless given rows are there."""
    keys = {*hints["groups"], *(column for pair in hints["keys"] for column in pair)}
    for number, hint in enumerate([one for one in hints["conditions"] if one["gap"]][:_MOST_EDGES]):
        for place, (count, group_first) in enumerate(_EDGE_ROWS):
            rng = np.random.default_rng([hints["seed"], len(KINDS) + number, place])
            sketches = _chosen(facts, hints, count, group_first, rng)
            try:
                edge = Edge(tables, {one.facts.name: one.rows for one in sketches}, facts, hint, keys, rng)
                if edge.is_reached():
                    yield edge.recipes()
                    if edge.has_both_sides():
                        break
            except Exception:  # values with which one cannot compute, as texts or other objects
                break


def _chosen(facts: list[Facts], hints: Hints, count: int, group_first: bool, rng: Rng) -> list[Sketch]:
    """Returns a sketch of each table; rows of the largest table are chosen first."""
    found: list[Sketch] = []
    joined = [column for pair in hints["keys"] for column in pair]
    for one in sorted(facts, key=lambda one: -len(one.frame)):
        if not found:
            rows = _first_rows(one, hints, count, group_first, rng)
            rows = narrowed(one, rows, joined, rng) if joined and count > 2 else rows
        else:
            known = [(c, s.key_values(c)) for s in found for c in dict.fromkeys(joined) if c in s.facts.frame.columns]
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
        literals = [(condition.columns[0], literal) for condition in conditions for literal in condition.literals]
        for row, place in zip(rng.permutation(len(sketch.rows)), rng.permutation(len(literals)), strict=False):
            sketch.set_value(int(row), *literals[place])


def _at_periods(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Puts dates at the beginnings and ends of months, days or hours, first those around conditions."""
    for sketch in sketches:
        for period in sketch.facts.periods:
            near = [row for one in sketch.facts.conditions if one.columns == [period.column] for row in one.near]
            some = sketch.rows[: len(sketch.rows) // 2]
            edges = [period.edges(near), period.edges(period.months, "month"), period.edges(some)]
            mixed = zip_longest(*(rng.permutation(one.index.size) for one in edges))
            moments = [
                one.iloc[place] for row in mixed for one, place in zip(edges, row, strict=True) if place is not None
            ]
            for row, moment in zip(rng.permutation(len(sketch.rows) // 2), moments, strict=False):
                sketch.set_value(int(row), period.column, moment_literal(moment))


def _at_own_periods(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Puts some dates at the beginnings and ends of their own months, days or hours, so that few of these are empty."""
    for sketch in sketches:
        for period in sketch.facts.periods:
            edges = period.edges(sketch.rows)
            place_of = {row: place for place, row in enumerate(sketch.rows)}
            for place in rng.permutation(len(edges))[: len(sketch.rows) // 8]:
                sketch.set_value(place_of[edges.index[place]], period.column, moment_literal(edges.iloc[place]))


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
    """Makes one condition false for all rows but one, or for all if there may be none."""
    for sketch in sketches:
        if sketch.facts.conditions:
            condition = sketch.facts.conditions[int(rng.integers(len(sketch.facts.conditions)))]
            for row in range(0 if hints["may_be_empty"] else 1, len(sketch.rows)):
                sketch.flip(row, condition, False, rng)


def _without_rows(sketches: list[Sketch], hints: Hints, rng: Rng) -> None:
    """Leaves out all rows of the largest table."""
    sketches[0].rows = []


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
    ("mixed", 40, False, _mixed),
    ("mixed", 40, True, _mixed),
    (_VALUES, 40, False, _as_they_are),
    (_VALUES, 24, False, _as_they_are),
    (_MANY, _MOST_ROWS, False, _as_they_are),
    (_MANY, _MOST_ROWS, False, _boundaries),
    (_MANY, _MOST_ROWS, False, _missing),
    (_MANY, _MOST_ROWS, False, _ties),
    (_NO_ROWS, 1, False, _without_rows),
    (_PERIODS, 48, False, _at_periods),
    (_PERIODS, _MOST_ROWS, False, _at_own_periods),
)
"""Name, rows, whether whole groups are chosen first, and what is done to the cells."""
_FEW_ROWS = 20
"""Variants of at most so many rows are made even if nothing in them is changed, as there are no others so small."""
_CHANGED: dict[_Change, tuple[str, ...]] = {
    _boundaries: ("conditions",),
    _empty: ("conditions",),
    _missing: ("nullable",),
    _mixed: ("conditions", "nullable"),
}
"""What a table must have for a change to change anything; without it, a variant is like those with rows as they are."""
_EDGE_ROWS = ((40, True), (2000, False))
"""As for `KINDS`, the rows in which computed edges are looked for."""
_MOST_EDGES = 4
_SMALL = 30
_OF_SMALL_TABLES = frozenset({1, 3, 4, 6, 8, 9, 11, 18})
"""Places of those that are made only where no table has more than `_SMALL` rows, since many of the others are alike."""
