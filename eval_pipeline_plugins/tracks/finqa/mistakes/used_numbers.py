"""Finds which numbers gold and answer use, and where these are on the page."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from eval_pipeline.answers.printed import printed_number
from eval_pipeline.core.numbers import normalised_text
from eval_pipeline.core.values import value
from eval_pipeline.tracks.shown.cards import CardCell, Mark, Text
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, cell_text
from eval_pipeline_plugins.tracks.finqa.programs.execute import cell_number
from eval_pipeline_plugins.tracks.finqa.programs.program import TABLE_OPERATIONS, Label, Program, literal_values

_NUMBER = re.compile(r"(?<![\w.,])(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_SENTENCE = re.compile(r"\S.*?(?:[.;](?=\s|\Z)|\Z|\n)", re.DOTALL)
_MOST_TEXT = 100_000
_COUNTS = frozenset(map(float, (*range(13), 100, 1000)))
"""Numbers that occur in any text."""

Place = tuple[int, int]
"""Row and column of the table, both from 0."""


@value
class Used:
    """What two programs use of a page.

    Attributes:
        numbers: absolute value → who uses it; in the order of the gold program, then of the answer's.
        cells: cell of the table → who uses it.
        in_text: used numbers that are printed in the text.
    """

    numbers: Mapping[float, Mark]
    cells: Mapping[Place, Mark]
    in_text: Set[float]


def used_numbers(gold: Program, answer: Program | None, page: Document) -> Used:
    """Returns numbers and cells used by the gold program, the answer's, or both.

    Signs are ignored as a matter of style.
    """
    by_gold, by_answer = _sizes(gold), {} if answer is None else _sizes(answer)
    numbers = {size: _mark(size in by_gold, size in by_answer) for size in {**by_gold, **by_answer}}
    cells = _cells(numbers, page)
    for program, mark in ((gold, Mark.GOLD), (answer, Mark.ANSWER)):
        for place in () if program is None else _rows_read(program, page):
            cells[place] = mark if cells.get(place, mark) is mark else Mark.BOTH
    found = {_size_of(match[0], numbers) for text in _texts(page) for match in _NUMBER.finditer(text)}
    return Used(numbers, cells, frozenset(size for size in found if size is not None))


def _sizes(program: Program) -> dict[float, None]:
    return {_rounded(abs(number)): None for number in literal_values(program)}


def _rounded(size: float) -> float:
    return float(f"{size:.10g}")


def _mark(by_gold: bool, by_answer: bool) -> Mark:
    return Mark.BOTH if by_gold and by_answer else Mark.GOLD if by_gold else Mark.ANSWER


def _printed_as(size: float, numbers: Mapping[float, Mark]) -> float | None:
    """Returns the used number that a printed one stands for, either directly or as a percentage."""
    whole = _rounded(size)
    if whole in numbers:
        return whole
    share = _rounded(size / 100)
    return share if share in numbers else None


def _cells(numbers: Mapping[float, Mark], page: Document) -> dict[Place, Mark]:
    found = {}
    for row, cells in enumerate(page.table):
        for column, cell in enumerate(cells):
            number = cell_number(cell)
            of = None if number is None else _printed_as(abs(number), numbers)
            if of is not None:
                found[row, column] = numbers[of]
    return found


def _rows_read(program: Program, page: Document) -> Iterator[Place]:
    """Yields the cells of the rows that operations such as `table_sum` read."""
    for step in program.steps:
        if step.operation not in TABLE_OPERATIONS or not isinstance(step.arguments[0], Label):
            continue
        wanted = normalised_text(step.arguments[0].text)
        row = next((n for n, row in enumerate(page.table) if row and normalised_text(str(row[0])) == wanted), None)
        if row is not None:
            for column, cell in enumerate(page.table[row]):
                if column and cell_number(cell) is not None:
                    yield row, column


def where(size: float, used: Used, page: Document) -> list[str]:
    """Describes where on the page a number is: line item and column, or the text."""
    places = [_named(page, row, column) for row, column in used.cells if _size_in(page, row, column, used) == size]
    in_text = size in used.in_text and not (places and size in _COUNTS)
    return [*places, "the text"] if in_text else places


def _size_in(page: Document, row: int, column: int, used: Used) -> float | None:
    """Returns the used number that a cell prints."""
    number = cell_number(page.table[row][column])
    return None if number is None else _printed_as(abs(number), used.numbers)


def _named(page: Document, row: int, column: int) -> str:
    if not row:
        return "a header of the table"
    return f"{cell_text(page.table[row][0])}, {_header(page, column)}" if column else "a label of the table"


def _header(page: Document, column: int) -> str:
    header = page.table[0]
    return cell_text(header[column]) if column < len(header) else f"column {column}"


def sentences_used(used: Used, page: Document) -> list[list[Text]]:
    """Returns the sentences with used numbers, as pieces; small counts are included only if the table lacks them."""
    in_table = {_size_in(page, row, column, used) for row, column in used.cells}
    shown = {size for size in used.numbers if size not in in_table or size not in _COUNTS}
    return list(_in_text(page, used.numbers, shown))


def _in_text(page: Document, numbers: Mapping[float, Mark], shown: Set[float]) -> Iterator[list[Text]]:
    if not shown:
        return
    for text in _texts(page):
        for sentence in _SENTENCE.finditer(text):
            pieces = list(_pieces(sentence[0].strip(), numbers, shown))
            if len(pieces) > 1 or isinstance(pieces[0], CardCell):
                yield pieces


def _texts(page: Document) -> tuple[str, ...]:
    return page.pre_text[:_MOST_TEXT], page.post_text[:_MOST_TEXT]


def _size_of(printed: str, numbers: Mapping[float, Mark]) -> float | None:
    """Returns the used number that a text prints."""
    number = printed_number(printed.rstrip(","))
    return None if number is None else _printed_as(abs(number.value), numbers)


def _pieces(sentence: str, numbers: Mapping[float, Mark], shown: Set[float]) -> Iterator[Text]:
    end = 0
    for match in _NUMBER.finditer(sentence):
        size = _size_of(match[0], numbers)
        if size in shown and size is not None:
            if match.start() > end:
                yield sentence[end : match.start()]
            yield CardCell(match[0], numbers[size])
            end = match.end()
    if end < len(sentence):
        yield sentence[end:]


def answers_before(size: float, earlier: Sequence[tuple[int, object]]) -> int | None:
    """Returns the index of the last earlier turn whose answer is this number; None if there is none."""
    for index, answer in reversed(earlier):
        if isinstance(answer, float) and _printed_as(abs(answer), {size: Mark.BOTH}) is not None:
            return index
    return None
