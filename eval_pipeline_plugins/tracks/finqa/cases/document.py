"""The document of a case, the gold of a turn, and the numbers that operands may come from."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from typing import TypeAlias

from eval_pipeline.answers.printed import Number
from eval_pipeline.core.model import Case, Turn
from eval_pipeline.core.numbers import number_text
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.cases.number_places import NumberPlace, Rows, number_places
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal, Program

Cell = str | float
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FRACTION = re.compile(r"\.\d+")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_BLANKED = bytes(byte if byte in b"0123456789." else ord(" ") for byte in range(256))
_SCALES = (1.0, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9)
_MOST_PAIRS = 20_000
_ALWAYS = frozenset(float(n) for n in (*range(13), 100, 1000, 1_000_000))


@dataclass(frozen=True)
class Document:
    """A page of a filing. It has no slots, so that its numbers can be cached after the first search.

    Attributes:
        table: rows of cells, the header first; the first cell of a row is its label.
        answers: the gold answers of the conversation, which later turns may use.
    """

    pre_text: str
    table: Rows
    post_text: str
    answers: tuple[Number, ...] = ()

    @cached_property
    def numbers(self) -> frozenset[float]:
        """Absolute values of all numbers in text, table and answers; percentages as printed, see `has`."""
        return self.printed | {_rounded(abs(answer.value)) for answer in self.answers}

    @cached_property
    def printed(self) -> frozenset[float]:
        """Absolute values of all numbers printed on the page."""
        found = numbers_in("\n".join((self.pre_text, self.post_text, *_texts(self.table))))
        found.update(abs(cell) for row in self.table for cell in row if not isinstance(cell, str))
        return frozenset(found)

    @cached_property
    def placed(self) -> Mapping[float, Sequence[NumberPlace]]:
        """Sizes of the numbers on the page, with their places."""
        return number_places(self.table, (self.pre_text, self.post_text))

    @cached_property
    def pairs(self) -> Sequence[tuple[float, float]]:
        """Pairs of numbers of one line item, or of one row or column of the table."""
        lines = defaultdict[tuple[str, object], dict[float, None]](dict)
        for size, places in self.placed.items():
            for place in places:
                row, column = place.cell or (place.item, place.item)
                lines["row", row][size] = lines["column", column][size] = None
        found = (pair for sizes in lines.values() for pair in combinations(sizes, 2))
        return list(dict.fromkeys(islice(found, _MOST_PAIRS)))

    @cached_property
    def _lines(self) -> Mapping[tuple[str, int | str], Mapping[int, float]]:
        """The sizes along each row and column of the table and each list of a sentence, by position."""
        lines = defaultdict[tuple[str, int | str], dict[int, float]](dict)
        for size, places in self.placed.items():
            for line, position in (found for place in places for found in place.lines()):
                lines[line][position] = size
        return lines

    def steps_from(self, place: NumberPlace) -> Iterator[tuple[tuple[int, int], float]]:
        """Yields the other numbers in the row and in the column of a place, each with the way to it."""
        for line, position in place.lines():
            for other, size in self._lines[line].items():
                if other != position:
                    yield (other - position, 0) if line[0] == "column" else (0, other - position), size

    def places_of(self, literal: Literal) -> Sequence[NumberPlace]:
        """Returns the places of a number on the page, ignoring its sign; 0.0397 also matches a printed 3.97."""
        size = abs(literal.value)
        return [*self.placed.get(_rounded(size), ()), *self.placed.get(_rounded(size * 100), ())]

    def prints(self, size: float) -> bool:
        """Whether a size is printed on the page as it is, or as a percentage."""
        return size in self.printed or _rounded(size * 100) in self.printed

    @cached_property
    def text(self) -> str:
        """The page as text for the model; table cells are separated by bars."""
        table = "\n".join(f"| {' | '.join(cell_text(cell).replace('|', '/') for cell in row)} |" for row in self.table)
        return "\n\n".join(part for part in (self.pre_text.strip(), table, self.post_text.strip()) if part)

    def has(self, operand: float) -> bool:
        """Whether an operand is in the document, ignoring sign, percent and thousands; small counts always are."""
        return _is_among(operand, self.numbers)

    def shows(self, operand: float) -> bool:
        """Whether the page itself prints an operand, in the same sense."""
        return _is_among(operand, self.printed)


def _is_among(operand: float, numbers: frozenset[float]) -> bool:
    size = abs(operand)
    return size in _ALWAYS or size in numbers or any(_rounded(size * scale) in numbers for scale in _SCALES)


def numbers_in(text: str) -> set[float]:
    """Returns the numbers in a text as runs of digits without commas; `.3` gives 0.3 and 3, `1.2.3` gives 1.2 and 3."""
    if text.isascii() or _OTHER_DIGIT.search(text) is None:
        # Blanking everything else and splitting is ten times as fast as searching a page for digits.
        blanked = text.encode(errors="surrogatepass").translate(_BLANKED, b",")
        # Most of the page is blank now. Searching for two characters is slow if one of them is everywhere, so blanks go
        # first.
        runs = (b" %b " % b" ".join(blanked.split())).replace(b". ", b"  ")
        if b" ." not in runs:
            with suppress(ValueError):  # e.g. 1.2.3
                return set(map(float, runs.split()))
    text = text.replace(",", "")
    found = set(map(float, _NUMBER.findall(text)))
    for match in _FRACTION.finditer(text):
        start = match.start()
        if start == 0 or not text[start - 1].isdigit():  # a separate .3, not the end of 12.3
            found.add(float(match[0]))
    return found


def _texts(table: Rows) -> Iterable[str]:
    return (cell for row in table for cell in row if isinstance(cell, str))


def _rounded(size: float) -> float:
    """Rounds to ten significant digits, so that 0.0397 and 3.97 / 100 are equal."""
    return float(f"{size:.10g}")


@value
class FinqaGold:
    """The gold of a turn.

    Attributes:
        program_text: the program as in the suite.
        expected: the answer; a text is yes or no.
        printed: the answer as printed in the filing, if the data set has it.
        printed_number: `printed` as a number, if it is one.
        operations: operations of the program, with synonyms expanded.
        literals: distinct literal operands of the program.
        written_operations: number of operations as written.
        table: the document's table, for `table_*` operations.
    """

    program_text: str
    program: Program
    expected: float | str
    printed: str | None
    printed_number: Number | None
    operations: tuple[str, ...]
    literals: tuple[float, ...]
    written_operations: int
    table: Rows

    def expected_text(self) -> str:
        """Returns the answer for display."""
        return self.expected if isinstance(self.expected, str) else number_text(self.expected)


FinqaTurn: TypeAlias = Turn[FinqaGold]
FinqaCase: TypeAlias = Case[Document, FinqaGold]


def answer_numbers(golds: Iterable[FinqaGold]) -> tuple[Number, ...]:
    """Returns the numeric answers as computed, as displayed and as printed."""
    found: list[Number] = []
    for gold in golds:
        if not isinstance(gold.expected, str):
            found.append(Number(gold.expected))
        if gold.printed_number is not None:
            found.append(gold.printed_number)
    return tuple(found)


def cell_text(cell: Cell) -> str:
    """Returns a cell as shown in the prompt."""
    if isinstance(cell, str):
        return cell
    return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
