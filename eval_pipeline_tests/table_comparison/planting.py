"""Random pairs of tables that differ by known relaxations."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.table_comparison.table import ComparedTable, Shape

R = Relaxation
WORDS = ("Ada Lovelace", "Grace Hopper", "Alan Turing", "Kurt Gödel", "Emmy Noether", "Édouard Roche", "Li Wei")
NAMES = ("city", "revenue", "share", "since", "units", "name", "note", "region", "score", "year")


@dataclass
class Draft:
    """The expected table and the generated one in the making, column by column."""

    rng: random.Random
    names: list[str | None]
    kinds: list[str]
    expected: list[list[Any]]
    ties: tuple[int, ...] | None = None
    generated: list[list[Any]] = field(default_factory=list)
    generated_names: list[str | None] = field(default_factory=list)
    shape: Shape = "table"
    kept: int = 0

    def column(self, *kinds: str) -> list[Any] | None:
        """Returns a generated column of one of the kinds, if there is one."""
        places = [place for place, kind in enumerate(self.kinds) if kind in kinds]
        return self.generated[self.rng.choice(places)] if places else None

    def change(self, change: Callable[[Any], Any], *kinds: str) -> bool:
        """Changes the cells of a generated column of one of these kinds; returns whether one changed."""
        column = self.column(*kinds)
        if column is None:
            return False
        before = list(column)
        column[:] = [cell if cell is None else change(cell) for cell in column]
        return any(type(one) is not type(other) or one != other for one, other in zip(column, before, strict=True))


KINDS: dict[str, Callable[[random.Random, int], Any]] = {
    "key": lambda rng, row: 1000 + 7 * row,
    "count": lambda rng, row: rng.randint(0, 50),
    "text": lambda rng, row: f"{rng.choice(WORDS)} {rng.randint(1, 99)}",
    "word": lambda rng, row: rng.choice(WORDS),
    "real": lambda rng, row: rng.uniform(1, 1000) + 1e-5,
    "fraction": lambda rng, row: rng.uniform(0.01, 0.99),
    "day": lambda rng, row: date(2020, 1, 1) + timedelta(rng.randint(0, 900)),
    "gap": lambda rng, row: None if rng.random() < 0.4 else rng.choice(WORDS),
    "flag": lambda rng, row: rng.random() < 0.5,
}


def draft(rng: random.Random, rows: int, width: int) -> Draft:
    """Returns two equal tables; the first column is a key."""
    kinds = ["key", *(rng.choice(list(KINDS)[1:]) for _ in range(width - 1))]
    cells = [[KINDS[kind](rng, row) for row in range(rows)] for kind in kinds]
    names: list[str | None] = [f"{NAMES[place % len(NAMES)]}{place}" for place in range(width)]
    made = Draft(rng, names, kinds, cells, kept=rows)
    made.generated, made.generated_names = [list(column) for column in cells], list(names)
    return made


def _ordered(made: Draft, *, ties: bool) -> bool:
    rows = len(made.expected[0])
    if rows < 3:
        return False
    made.ties = tuple(row // 2 for row in range(rows)) if ties else tuple(range(rows))
    order = list(range(rows))
    if ties:
        order[0], order[1] = 1, 0
    else:
        order = order[1:] + order[:1]
    made.generated[:] = [[column[row] for row in order] for column in made.generated]
    return True


def _rounded(made: Draft) -> bool:
    digits = made.rng.choice([0, 1])
    if made.change(lambda cell: round(cell, digits), "real"):
        return True
    return made.change(lambda cell: cell if isinstance(cell, str) else round(cell, 2), "fraction")


def _nulls(made: Draft) -> bool:
    word = made.rng.choice(["", "N/A", "NULL", "None", "nan"])
    column = made.column("gap")
    if column is None or None not in column:
        return False
    column[:] = [word if cell is None else cell for cell in column]
    return True


def _repeated(made: Draft) -> bool:
    if made.rng.random() < 0.5:
        for column in made.generated:
            column.extend(column[:2])
    else:
        rows = len(made.expected[0])
        for column in made.expected:
            column.extend(column[:2])
        if made.ties is not None:
            made.ties = (*made.ties, *(made.ties[-1] + 1 + place for place in range(len(made.expected[0]) - rows)))
    return True


def _extra(made: Draft) -> bool:
    place = made.rng.randint(0, len(made.generated))
    made.generated.insert(place, [f"more {made.rng.random()}" for _ in made.generated[0]])
    made.generated_names.insert(place, "more")
    return True


def _missing(made: Draft) -> bool:
    if len(made.kinds) < 3:
        return False
    place = made.rng.randrange(1, len(made.generated))
    del made.generated[place], made.generated_names[place], made.kinds[place]
    return True


def _reordered(made: Draft) -> bool:
    if len(made.generated) < 2:
        return False
    turn = made.rng.randrange(1, len(made.generated))
    for side in (made.generated, made.generated_names):
        side[:] = side[turn:] + side[:turn]
    return True


def _renamed(made: Draft) -> bool:
    made.generated_names[:] = [f"{name}_x" for name in made.generated_names]
    return True


def _shaped(made: Draft) -> bool:
    made.shape = "list" if len(made.generated) == 1 else "row" if len(made.generated[0]) == 1 else "table"
    return made.shape != "table"


def _tolerance(made: Draft) -> bool:
    return made.change(lambda cell: cell * (1 + made.rng.choice([-1, 1]) * made.rng.uniform(2e-5, 8e-5)), "real")


def _percent(made: Draft) -> bool:
    if made.rng.random() < 0.3:
        return made.change(lambda cell: f"{cell * 100!r}%", "fraction")
    return made.change(lambda cell: cell * 100, "fraction")


def _dated(made: Draft) -> bool:
    form = made.rng.choice(["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%b %d, %Y", "%d %B %Y", "%Y-%m-%dT00:00:00Z"])
    return made.change(lambda cell: cell.strftime(form), "day")


def _texts(made: Draft) -> bool:
    if made.rng.random() < 0.5:
        return made.change(lambda cell: f"{cell:,}" if isinstance(cell, int) else str(cell), "key", "count")
    return made.change(lambda cell: cell if isinstance(cell, str) else str(cell), "real", "key")


def _spaced(made: Draft) -> bool:
    def spaced(cell: Any) -> Any:
        changed = made.rng.choice([f" {cell} ", f"{cell}\n", f"\u00a0{cell}", cell.replace(" ", "  ") + " "])
        return changed if isinstance(cell, str) else cell

    return made.change(spaced, "text", "word", "gap")


PLANTS: dict[Relaxation, Callable[[Draft], bool]] = {
    R.MISSING_COLUMNS: _missing,
    R.TIE_ORDER: lambda made: _ordered(made, ties=True),
    R.ROW_ORDER: lambda made: _ordered(made, ties=False),
    R.PERCENT: _percent,
    R.TOLERANCE: _tolerance,
    R.ROUNDING: _rounded,
    R.DATES: _dated,
    R.TEXT_NUMBERS: _texts,
    R.CASE: lambda made: made.change(made.rng.choice([str.upper, str.lower, str.swapcase]), "text", "word", "gap"),
    R.WHITE_SPACE: _spaced,
    R.NULLS: _nulls,
    R.COLUMN_ORDER: _reordered,
    R.EXTRA_COLUMNS: _extra,
    R.COLUMN_NAMES: _renamed,
    R.DUPLICATES: _repeated,
    R.SHAPE: _shaped,
}
"""In the order in which they are applied; each returns whether it could be."""
APART = [
    {R.TIE_ORDER, R.ROW_ORDER},  # the order of rows is that of tied rows too
    {R.ROUNDING, R.TOLERANCE},  # may meet in one column
]


def planted(
    seed: int, rows: int | None = None, width: int | None = None
) -> tuple[ComparedTable, ComparedTable, frozenset[Relaxation]]:
    """Returns a generated table, the expected one, and the one to three relaxations by which they differ."""
    rng = random.Random(seed)
    while True:
        made = draft(rng, rows or rng.choice([1, 3, 6, 12, 25]), width or rng.choice([1, 2, 3, 5, 8]))
        chosen = set(rng.sample(list(PLANTS), rng.randint(1, 3)))
        if any(pair <= chosen for pair in APART):
            continue
        if all(PLANTS[one](made) for one in PLANTS if one in chosen):
            break
    generated = list(zip(*made.generated, strict=True))
    expected = list(zip(*made.expected, strict=True))
    if made.ties is None:
        rng.shuffle(generated)
    return (
        ComparedTable(tuple(made.generated_names), generated, None, made.shape),
        ComparedTable(tuple(made.names), expected, made.ties),
        frozenset(chosen),
    )
