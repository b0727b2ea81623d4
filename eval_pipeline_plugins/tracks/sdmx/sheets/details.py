"""The text of the cell `indicator selection details`, which lists every term with its result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval_pipeline.reports.excel.book import MOST

REST = "dimensions not in target"
_SECTIONS = (("tp", "True Positives"), ("fn", "False Negatives"), ("fp", "False Positives"))
_NOTE_ROOM = 120
REASONS = {
    "unknown_data_set": "not valid: no such data set",
    "unknown_dimension": "not valid: no such dimension",
    "unknown_code": "not valid: no such code",
    "other_name": "the catalogue has another name",
    "no_data": "a valid code without data",
}


@dataclass(frozen=True, slots=True)
class Block:
    """One dimension of one data set.

    Attributes:
        in_target: whether the target gives terms for it.
        terms: the verdict (`tp`, `fn` or `fp`), id and name of each term, and what the catalogue lacks of it (a key of
            `REASONS`, or None).
    """

    data_set: str
    dimension: str
    in_target: bool
    precision: float | None
    recall: float | None
    terms: tuple[tuple[str, str, str, str | None], ...]


def details_text(blocks: Sequence[Block]) -> str:
    """Returns the target's dimensions, then the others; lines that do not fit into a cell are left out.

    If several data sets are used, each has a heading line above its dimensions.
    """
    return _fitted(list(turn_lines(blocks)))


def conversation_text(turns: Sequence[tuple[str, Sequence[Block]]]) -> str:
    """Returns the details of several turns, each under its question."""
    lines: list[str] = []
    for number, (question, blocks) in enumerate(turns, start=1):
        lines += ["", f"Turn {number}: {' '.join(question.split())}", *turn_lines(blocks)]
    return _fitted(lines[1:])


def turn_lines(blocks: Sequence[Block]) -> Iterator[str]:
    """Yields the lines of one turn."""
    named = len({block.data_set for block in blocks}) > 1
    yield from _block_lines([block for block in blocks if block.in_target], named)
    rest = [block for block in blocks if not block.in_target and block.terms]
    if rest:
        yield REST
        yield from _block_lines(rest, named)


def _block_lines(blocks: Sequence[Block], named: bool) -> Iterator[str]:
    data_set = None
    for block in sorted(blocks, key=lambda block: _first_place(blocks, block.data_set)):
        if named and block.data_set != data_set:
            data_set = block.data_set
            yield data_set
        yield block.dimension
        yield f"[recall: {_rate(block.recall)}, precision: {_rate(block.precision)}]"
        for verdict, title in _SECTIONS:
            terms = [term[1:] for term in block.terms if term[0] == verdict]
            yield f"{title} [{len(terms)}]"
            yield from (_term_line(*term) for term in terms)


def _term_line(id: str, name: str, doubt: str | None) -> str:
    shown = ": ".join(filter(None, (id, " ".join(name.split()))))
    return f"  * {shown} [{REASONS[doubt]}]" if doubt in REASONS else f"  * {shown}"


def _first_place(blocks: Sequence[Block], data_set: str) -> int:
    return next(place for place, block in enumerate(blocks) if block.data_set == data_set)


def _rate(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _fitted(lines: Sequence[str]) -> str:
    """Joins the lines that fit into a cell, with a note if some do not."""
    if sum(_units(line) + 1 for line in lines) <= MOST:
        return "\n".join(lines)
    kept: list[str] = []
    room = MOST - _NOTE_ROOM
    for line in lines:
        room -= _units(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, f"… [cut: {len(lines) - len(kept):,} more lines; the table sdmx_terms holds every term]"])


def _units(text: str) -> int:
    """Returns the text's length in UTF-16 units, as Excel counts, including what escaping may add."""
    return len(text.encode("utf-16-le")) // 2 + 6 * text.count("_x")
