"""Shows two results side by side: rows that only one has, and differing cells in otherwise equal rows."""

from collections.abc import Callable, Hashable, Sequence

from eval_pipeline.core.values import value
from eval_pipeline.table_comparison.alignment.pairing import Pairing, pair
from eval_pipeline.table_comparison.table import ComparedTable
from eval_pipeline.tracks.shown.cards import BesideCard, CardCell, Mark, TableCard, Text

MOST_ROWS = 20
MOST_COLUMNS = 20
_MOST_NOTED = 60

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


def beside(
    title: str,
    expected: ShownResult,
    returned: ShownResult,
    text_of: Callable[[Hashable], str],
    names: tuple[str, str] = ("Expected", "Returned"),
    remark: str = "",
    as_compared: Callable[[Hashable], Hashable] | None = None,
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
        as_compared: what a cell stands for, where it is another value than that which is shown.
    """
    found = pair(_table(returned, as_compared), _table(expected, as_compared))
    pairing = None
    if expected.comparable and returned.comparable:
        pairing = found
        remark = remark or _told(pairing, expected, returned)
    else:
        remark = remark or "Rows are not marked: not all of them were kept."
    sides = [
        _side(names[side], result, side, found.columns, pairing, (expected, returned)[1 - side], text_of)
        for side, result in enumerate((expected, returned))
    ]
    return BesideCard(title, sides, remark)


def _table(result: ShownResult, as_compared: Callable[[Hashable], Hashable] | None) -> ComparedTable:
    if as_compared is None:
        return ComparedTable(tuple(result.columns), result.rows)
    return ComparedTable(tuple(result.columns), [tuple(map(as_compared, row)) for row in result.rows])


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
) -> TableCard:
    paired = {pair[side]: pair[1 - side] for pair in columns}
    alone = Mark.MISSING if side == 0 else Mark.EXTRA
    order, partner, lonely = _order(len(result.rows), side, pairing)
    kept = sorted(range(len(result.columns)), key=lambda place: place in paired)[:MOST_COLUMNS]
    kept.sort()

    def cell(row: int, place: int) -> Text:
        text = text_of(result.rows[row][place])
        if place not in paired:
            return CardCell(text, alone) if result.columns else text
        if row in lonely:
            return CardCell(text, alone)
        if row in partner:
            there = other.rows[partner[row]][paired[place]]
            places = (row, partner[row], place) if side == 0 else (partner[row], row, paired[place])
            if pairing is not None and not pairing.alike(*places):
                return (
                    CardCell(text, Mark.WRONG, _noted(text, there, text_of)) if side else CardCell(text, Mark.MISSING)
                )
        return text

    headers: list[Text] = [
        result.columns[place] if place in paired else CardCell(result.columns[place], alone) for place in kept
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
