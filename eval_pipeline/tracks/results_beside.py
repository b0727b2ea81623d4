"""Shows two results side by side: rows that only one has, and differing cells in otherwise equal rows."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from math import isclose, isfinite

from eval_pipeline.core.values import value
from eval_pipeline.tracks.cards import BesideCard, Cell, Mark, TableCard, Text

MOST_ROWS = 20
MOST_COLUMNS = 20
_MOST_PAIRED = 80
"""Number of rows of each side that are compared with each other; further differing rows count as missing or extra."""
_MOST_NOTED = 60
_RELATIVE = 1e-6

Row = tuple[Hashable, ...]


@value
class ShownResult:
    """A result as cards show it.

    Attributes:
        columns: names.
        rows: the known rows, as comparable cells.
        count: total number of rows.
        places: indices of the known rows in the whole result, if these are only the rows that the other result lacks;
            None if they are its first rows.
    """

    columns: Sequence[str]
    rows: Sequence[Row]
    count: int
    places: Sequence[int] | None = None

    @property
    def comparable(self) -> bool:
        """Whether a row that appears to be missing in the other result really is."""
        return self.places is not None or self.count == len(self.rows)


@value
class Pairing:
    """Which rows of two results correspond, as indices.

    Attributes:
        same: pairs of equal rows.
        changed: pairs of rows with some cells in common.
        missing: expected rows without a counterpart.
        extra: returned rows without a counterpart.
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
    """Returns a card with both results, with differences first and marked.

    Rows that cannot be compared are not marked, since the other result may contain them beyond its known rows.

    Args:
        title: title of the card.
        expected: the right result.
        returned: the other result.
        text_of: formats a cell for display.
        names: names of the two results.
        remark: how they differ, if the results do not show it themselves.
        same: whether two cells are equal; default `same_cell`.
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
    """Returns pairs of corresponding columns: matched by name, then by contents, then by order."""
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
    """Pairs equal rows, then rows with the most cells in common; rows without a common cell stay alone."""
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
    """Yields rows that may correspond: minus the number of common cells, and both indices."""
    only_one = len(expected) == len(returned) == 1
    for one in missing[:_MOST_PAIRED]:
        for other in extra[:_MOST_PAIRED]:
            common = sum(map(same_cells, expected[one], returned[other]))
            if only_one or (common and 2 * common >= len(expected[one])):
                yield -common, one, other


def same_cell(one: Hashable, other: Hashable) -> bool:
    """Whether two cells are equal; numbers are compared to six digits."""
    if isinstance(one, int | float) and isinstance(other, int | float) and isfinite(one) and isfinite(other):
        return isclose(one, other, rel_tol=_RELATIVE, abs_tol=1e-12)
    return one == other


def _key(cell: Hashable) -> Hashable:
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _chosen(rows: Sequence[Row], columns: Sequence[tuple[int, int]], side: int) -> list[Row]:
    return [tuple([row[pair[side]] for pair in columns]) for row in rows]


def _told(pairing: Pairing, expected: ShownResult, returned: ShownResult) -> str:
    """Returns how many rows differ, in words."""
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
    """Returns the expected value for a note, with its type if it looks the same."""
    wanted = text_of(expected)
    kind = (
        "a text" if isinstance(expected, str) else "a number" if isinstance(expected, int | float) else "another value"
    )
    return f"expected {wanted[:_MOST_NOTED]}{f', {kind}' if wanted == text else ''}"


def _order(count: int, side: int, pairing: Pairing | None) -> tuple[list[int], dict[int, int], frozenset[int]]:
    """Returns the rows in display order (differing ones first), counterparts of changed rows, and unmatched rows."""
    if pairing is None:
        return list(range(count)), {}, frozenset()
    partner = {pair[side]: pair[1 - side] for pair in pairing.changed}
    lonely = frozenset(pairing.extra if side else pairing.missing)
    # Changed rows are at the same height on both sides.
    changed = [pair[side] for pair in pairing.changed]
    same = [pair[side] for pair in pairing.same]
    return [*changed, *sorted(lonely), *same], partner, lonely
