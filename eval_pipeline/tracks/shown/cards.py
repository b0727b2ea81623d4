"""Cards: what a track shows about a turn beyond what all tracks show, as plain data.

A track decides what is shown, not how: pages and exported folders draw each kind of card in their own way and escape
every text. Any text may come from a model.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, TypeAlias, Union

from eval_pipeline.core.values import value


class Mark(StrEnum):
    """The meaning of a piece of a card; it is shown by more than a colour."""

    GOLD = "gold"
    ANSWER = "answer"
    BOTH = "both"
    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    EXTRA = "extra"


MEANINGS: Mapping[Mark, str] = {
    Mark.GOLD: "used by the gold only",
    Mark.ANSWER: "used by the answer only",
    Mark.BOTH: "used by gold and answer",
    Mark.RIGHT: "right",
    Mark.WRONG: "wrong",
    Mark.MISSING: "missing",
    Mark.EXTRA: "not expected",
}
"""Descriptions of the marks, for legends and screen readers."""


@value
class CardCell:
    """A text with its meaning.

    Attributes:
        mark: None for ordinary text.
        note: shown small beside the text, e.g. its source or what it should be.
    """

    text: str
    mark: Mark | None = None
    note: str = ""


Text: TypeAlias = str | CardCell
"""A text with or without a mark."""


@value
class TableCard:
    """A table, e.g. of a document, of the rows returned by a query, or of a selection by dimension.

    Attributes:
        columns: headers.
        rows: each with as many cells as there are columns.
        remark: a sentence below the title; may be empty.
        row_headers: whether the first cell of each row is its header.
        left_out: number of further rows that are not shown.
    """

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[Text]
    rows: Sequence[Sequence[Text]]
    remark: str = ""
    row_headers: bool = False
    left_out: int = 0


@value
class CodeCard:
    """Code, or another text in which lines and spaces matter.

    Attributes:
        language: `python`, `sql`, …, for display; may be empty.
        marked: line number (from 1) → mark.
    """

    kind: ClassVar[str] = "code"
    title: str
    code: str
    language: str = ""
    remark: str = ""
    marked: Mapping[int, Mark] | None = None


@value
class TextCard:
    """Running text with marked pieces, which are joined without spaces."""

    kind: ClassVar[str] = "text"
    title: str
    pieces: Sequence[Text]
    remark: str = ""


@value
class DifferenceCard:
    """Two texts whose differences are shown word by word; `before` is the gold or the earlier text."""

    kind: ClassVar[str] = "difference"
    title: str
    before_name: str
    before: str
    after_name: str
    after: str
    remark: str = ""


@value
class FactsCard:
    """A definition list of names and values."""

    kind: ClassVar[str] = "facts"
    title: str
    facts: Sequence[tuple[str, Text]]
    remark: str = ""


@value
class TimelineStep:
    """A step of an attempt.

    Attributes:
        place: its number, which the card's other texts use.
        by: the tool that was called, or who spoke.
        call: what the tool was given, or what was said.
        result: what the tool gave, as text or as rows with a header.
        error: class of the error if it failed; empty otherwise.
        facts: what is known of it, such as rows, tokens and seconds.
        spent: what the attempt had taken when the step had ended.
        remark: why it is the first wrong one; empty for any other.
    """

    place: int
    by: str
    call: str
    result: "str | Sequence[Sequence[str]]" = ""
    error: str = ""
    facts: Sequence[str] = ()
    spent: str = ""
    remark: str = ""


@value
class TimelineCard:
    """What was done in an attempt, step by step; of a long one `left_out` later steps are not shown."""

    kind: ClassVar[str] = "timeline"
    title: str
    steps: Sequence[TimelineStep]
    remark: str = ""
    left_out: int = 0


@value
class BesideCard:
    """Cards shown side by side if there is room, e.g. expected and returned rows."""

    kind: ClassVar[str] = "beside"
    title: str
    cards: "Sequence[Card]"
    remark: str = ""


Card: TypeAlias = Union[TableCard, CodeCard, TextCard, DifferenceCard, FactsCard, TimelineCard, "BesideCard"]
"""All kinds of cards; each needs a macro in `view/templates/cards.html.j2`."""
