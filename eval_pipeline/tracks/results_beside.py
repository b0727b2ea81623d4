"""Two results side by side: rows that only one has, and cells that differ in rows which are otherwise the same."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from math import isclose, isfinite

from eval_pipeline.core.values import value
from eval_pipeline.tracks.cards import BesideCard, Cell, Mark, TableCard, Text

MOST_ROWS = 20
MOST_COLUMNS = 20
_MOST_PAIRED = 80
"""Rows of each side that are tried with each other; further ones that differ count as missing or not expected."""
_MOST_NOTED = 60
_RELATIVE = 1e-6

Row = tuple[Hashable, ...]


@value
class ShownResult:
    """A result as cards show it.

    Attributes:
        columns: names.
        rows: cells that can be compared, those that are known.
        count: how many rows there really are.
        places: of the known rows in the whole result, where these are only the rows that the other result lacks; else
            they are its first ones.
    """

    columns: Sequence[str]
    rows: Sequence[Row]
    count: int
    places: Sequence[int] | None = None

    @property
    def comparable(self) -> bool:
        """Whether a row that the other result seems to have alone really is."""
        return self.places is not None or self.count == len(self.rows)


@value
class Pairing:
    """Which rows of two results belong together, as their places in each.

    Attributes:
        same: equal rows.
        changed: rows that have some cells in common.
        missing: expected rows without another.
        extra: returned rows without another.
    """

    same: tuple[tuple[int, int], ...]
    changed: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]


def beside(
    title: str,
    expected: ShownResult,
    returned: ShownResult,
    text_of: Callable[[Hashable], str],
    names: tuple[str, str] = ("Expected", "Returned"),
    remark: str = "",
    same: Callable[[Hashable, Hashable], bool] | None = None,
) -> BesideCard:
    """Both results, what differs first and marked.

    Nothing is marked in rows that cannot be compared, since the other result may have them beyond what is known of it.

    Args:
        title: of the card.
        expected: the right result.
        returned: the other one.
        text_of: a cell as people read it.
        names: of the two.
        remark: how they differ, where the results do not say it themselves.
        same: whether two cells are; `same_cell` where left out.
    """
    same = same or same_cell
    columns = columns_aligned(expected, returned)
    pairing = None
    if expected.comparable and returned.comparable:
        pairing = rows_paired(_chosen(expected.rows, columns, 0), _chosen(returned.rows, columns, 1), same)
        remark = remark or _told(pairing, expected, returned)
    else:
        remark = remark or "Rows are not marked: not all of them were kept."
    sides = [
        _side(names[side], result, side, columns, pairing, (expected, returned)[1 - side], text_of, same)
        for side, result in enumerate((expected, returned))
    ]
    return BesideCard(title, sides, remark)


def columns_aligned(expected: ShownResult, returned: ShownResult) -> tuple[tuple[int, int], ...]:
    """Pairs of columns that stand for each other: by name, then by what is in them, then by their order."""
    mine, theirs = list(range(len(expected.columns))), list(range(len(returned.columns)))
    found: list[tuple[int, int]] = []

    def take(is_same: Callable[[int, int], bool]) -> None:
        for one in tuple(mine):
            other = next((place for place in theirs if is_same(one, place)), None)
            if other is not None:
                found.append((one, other))
                mine.remove(one)
                theirs.remove(other)

    names = [[name.casefold() for name in result.columns] for result in (expected, returned)]
    values = [[_values(result, place) for place in range(len(result.columns))] for result in (expected, returned)]
    take(lambda one, other: names[0][one] == names[1][other] and names[0][one] != "")
    take(lambda one, other: bool(values[0][one]) and values[0][one] == values[1][other])
    if len(mine) == len(theirs):
        found += zip(mine, theirs, strict=True)
    return tuple(sorted(found))


def _values(result: ShownResult, place: int) -> list[str]:
    return sorted(repr(_key(row[place])) for row in result.rows)


def rows_paired(
    expected: Sequence[Row], returned: Sequence[Row], same_cells: Callable[[Hashable, Hashable], bool]
) -> Pairing:
    """Pairs equal rows, then those with the most cells in common; rows without a common cell are alone."""
    places: defaultdict[Row, list[int]] = defaultdict(list)
    for place in reversed(range(len(returned))):
        places[tuple(map(_key, returned[place]))].append(place)
    same: list[tuple[int, int]] = []
    missing: list[int] = []
    for place, row in enumerate(expected):
        others = places.get(tuple(map(_key, row)))
        if others:
            same.append((place, others.pop()))
        else:
            missing.append(place)
    extra = sorted(place for others in places.values() for place in others)
    changed: list[tuple[int, int]] = []
    for common, one, other in sorted(_candidates(expected, returned, missing, extra, same_cells)):
        if one in missing and other in extra:
            missing.remove(one)
            extra.remove(other)
            (same if -common == len(expected[one]) else changed).append((one, other))
    return Pairing(tuple(sorted(same)), tuple(sorted(changed)), tuple(missing), tuple(extra))


def _candidates(
    expected: Sequence[Row],
    returned: Sequence[Row],
    missing: Sequence[int],
    extra: Sequence[int],
    same_cells: Callable[[Hashable, Hashable], bool],
) -> Iterator[tuple[int, int, int]]:
    """Rows that may belong together: minus their common cells, and their places."""
    only_one = len(expected) == len(returned) == 1
    for one in missing[:_MOST_PAIRED]:
        for other in extra[:_MOST_PAIRED]:
            common = sum(map(same_cells, expected[one], returned[other]))
            if only_one or (common and 2 * common >= len(expected[one])):
                yield -common, one, other


def same_cell(one: Hashable, other: Hashable) -> bool:
    """Whether two cells are the same, numbers to six digits."""
    if isinstance(one, int | float) and isinstance(other, int | float) and isfinite(one) and isfinite(other):
        return isclose(one, other, rel_tol=_RELATIVE, abs_tol=1e-12)
    return one == other


def _key(cell: Hashable) -> Hashable:
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _chosen(rows: Sequence[Row], columns: Sequence[tuple[int, int]], side: int) -> list[Row]:
    return [tuple([row[pair[side]] for pair in columns]) for row in rows]


def _told(pairing: Pairing, expected: ShownResult, returned: ShownResult) -> str:
    """How many rows differ, in words."""
    if not (pairing.changed or pairing.missing or pairing.extra):
        if len(expected.columns) == len(returned.columns):
            moved = any(one != other for one, other in pairing.same)
            return "The same rows in another order." if moved else "The same rows."
        return "The same in the columns that both have."
    told = (
        (len(pairing.same), "the same"),
        (len(pairing.changed), "with other values"),
        (len(pairing.missing), "missing"),
        (len(pairing.extra), "not expected"),
    )
    return f"Rows: {', '.join(f'{count:,} {word}' for count, word in told if count)}."


def _side(
    name: str,
    result: ShownResult,
    side: int,
    columns: Sequence[tuple[int, int]],
    pairing: Pairing | None,
    other: ShownResult,
    text_of: Callable[[Hashable], str],
    same: Callable[[Hashable, Hashable], bool],
) -> TableCard:
    paired = {pair[side]: pair[1 - side] for pair in columns}
    alone = Mark.MISSING if side == 0 else Mark.EXTRA
    order, partner, lonely = _order(len(result.rows), side, pairing)
    kept = sorted(range(len(result.columns)), key=lambda place: place in paired)[:MOST_COLUMNS]
    kept.sort()

    def cell(row: int, place: int) -> Text:
        text = text_of(result.rows[row][place])
        if place not in paired:
            return Cell(text, alone) if result.columns else text
        if row in lonely:
            return Cell(text, alone)
        if row in partner:
            there = other.rows[partner[row]][paired[place]]
            if not same(result.rows[row][place], there):
                return Cell(text, Mark.WRONG, _noted(text, there, text_of)) if side else Cell(text, Mark.MISSING)
        return text

    headers: list[Text] = [
        result.columns[place] if place in paired else Cell(result.columns[place], alone) for place in kept
    ]
    places = result.places or range(len(result.rows))
    rows = [[f"{places[row] + 1:,}", *(cell(row, place) for place in kept)] for row in order[:MOST_ROWS]]
    cut = len(result.columns) - len(kept)
    remark = f"{len(kept)} of {len(result.columns):,} columns shown." if cut else ""
    title = f"{name}, {result.count:,} row{'' if result.count == 1 else 's'}"
    return TableCard(title, ["row", *headers], rows, remark, row_headers=True, left_out=result.count - len(rows))


def _noted(text: str, expected: Hashable, text_of: Callable[[Hashable], str]) -> str:
    """What is expected in the place of a text, with its kind where it reads the same."""
    wanted = text_of(expected)
    kind = (
        "a text" if isinstance(expected, str) else "a number" if isinstance(expected, int | float) else "another value"
    )
    return f"expected {wanted[:_MOST_NOTED]}{f', {kind}' if wanted == text else ''}"


def _order(count: int, side: int, pairing: Pairing | None) -> tuple[list[int], dict[int, int], frozenset[int]]:
    """Rows in the order in which they are shown, those that differ first; the partners of changed ones; lonely ones."""
    if pairing is None:
        return list(range(count)), {}, frozenset()
    partner = {pair[side]: pair[1 - side] for pair in pairing.changed}
    lonely = frozenset(pairing.extra if side else pairing.missing)
    # Changed rows stand at the same height on both sides.
    changed = [pair[side] for pair in pairing.changed]
    same = [pair[side] for pair in pairing.same]
    return [*changed, *sorted(lonely), *same], partner, lonely
