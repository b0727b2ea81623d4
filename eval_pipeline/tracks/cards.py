"""Cards: what a track shows of a turn beyond what all tracks have, as plain data.

A track says what there is to see, never how it looks: pages and exported folders draw each kind in their own way, and
escape every text. All texts may come from a model.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, TypeAlias, Union

from eval_pipeline.core.values import value


class Mark(StrEnum):
    """What a piece of a card is; shown by more than a colour."""

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
"""The legend of a card, and what is read out."""


@value
class Cell:
    """A text with what it is.

    Attributes:
        mark: None for nothing special.
        note: shown beside the text, small: where it comes from, what it should be.
    """

    text: str
    mark: Mark | None = None
    note: str = ""


Text: TypeAlias = str | Cell
"""A text, marked or not."""


@value
class TableCard:
    """A table: a document's, rows that a query returned, a selection by dimension.

    Attributes:
        columns: headers.
        rows: as many cells each as there are columns.
        remark: a sentence below the title; empty for none.
        row_headers: the first cell of each row names the row.
        left_out: rows that there are beyond these.
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
    """Code, or another text whose lines and spaces count.

    Attributes:
        language: `python`, `sql`, …, as people say it; empty where it has none.
        marked: lines that stand out, from 1.
    """

    kind: ClassVar[str] = "code"
    title: str
    code: str
    language: str = ""
    remark: str = ""
    marked: Mapping[int, Mark] | None = None


@value
class TextCard:
    """Running text in which pieces stand out; the pieces follow one another without a space."""

    kind: ClassVar[str] = "text"
    title: str
    pieces: Sequence[Text]
    remark: str = ""


@value
class DifferenceCard:
    """Two texts whose differences are shown word by word: `before` is the gold, or the earlier one."""

    kind: ClassVar[str] = "difference"
    title: str
    before_name: str
    before: str
    after_name: str
    after: str
    remark: str = ""


@value
class FactsCard:
    """Names with what each is: a definition list."""

    kind: ClassVar[str] = "facts"
    title: str
    facts: Sequence[tuple[str, Text]]
    remark: str = ""


@value
class BesideCard:
    """Cards side by side where there is room: expected and returned rows, gold and answer."""

    kind: ClassVar[str] = "beside"
    title: str
    cards: "Sequence[Card]"
    remark: str = ""


Card: TypeAlias = Union[TableCard, CodeCard, TextCard, DifferenceCard, FactsCard, "BesideCard"]
"""All kinds there are; a kind more needs a macro in `view/templates/cards.html.j2`."""
