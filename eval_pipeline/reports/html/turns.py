"""The turns of a page: the mistakes in a line each, then each turn with all that a person needs to judge it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.values import value
from eval_pipeline.reports.contents.mistakes import kinds_of, mistakes, wrong_text
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.traces import traces
from eval_pipeline.reports.html.drawing import DrawnTurns, clipped, common_bound, size
from eval_pipeline.reports.places.paths import page_link
from eval_pipeline.reports.queries import mistakes_query
from eval_pipeline.reports.shown import place, short, shown_json, spent, verdict

ROOM, PROMPT_ROOM = 6_000_000, 3_000_000
"""The most bytes of a page for all texts together, and for all prompts together."""
MOST = 50_000
"""The most bytes for a single text."""
_SUMMARY = 150
_MOST_ROWS = 20
_PROMPT = "Prompt"


@dataclass(frozen=True, slots=True)
class Text:
    """A text that keeps its line breaks.

    Attributes:
        folded: whether it is hidden until clicked.
    """

    name: str
    text: str
    folded: bool = False


@dataclass(frozen=True, slots=True)
class ShortTurn:
    """A short form of one turn of the conversation.

    Attributes:
        place: as of `Card`.
        is_this: whether it is the turn of the card.
        is_shown: whether the page has a card of it.
    """

    place: str
    question: str
    answer: str
    verdict: str
    is_this: bool
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Card:
    """A turn as the page shows it.

    Attributes:
        place: `<case>#<index>`, followed by `~<sample>` from sample 1 on.
        kind: `right`, or its failure mode or error class.
        short: the question in one line.
        texts: texts in reading order.
        conversation: all turns of the conversation; empty if there is only one.
        spent: tokens, time and cost, in one line.
        page: relative link to its exported page, or None if the evaluation was not exported.
    """

    place: str
    kind: str
    short: str
    texts: tuple[Text, ...]
    conversation: tuple[ShortTurn, ...]
    spent: str
    page: str | None


@dataclass(frozen=True, slots=True)
class Cards:
    """The turns of a page, cut to fit.

    Attributes:
        bound, prompt_bound: number of bytes to which texts and prompts were cut; None if nothing was cut.
    """

    cards: tuple[Card, ...]
    bound: int | None
    prompt_bound: int | None


def turn_cards(
    evaluation: Evaluation, drawn: DrawnTurns, folder: Path, room: int = ROOM, prompt_room: int = PROMPT_ROOM
) -> Cards:
    """Returns the chosen turns in the suite's order, for a page in the given folder."""
    found = tuple(_cards(evaluation, drawn, folder))
    bounds = {
        is_prompt: _bound(
            [size(t.text) for card in found for t in card.texts if (t.name == _PROMPT) is is_prompt], most
        )
        for is_prompt, most in ((False, room), (True, prompt_room))
    }
    cut = (
        replace(card, texts=tuple(_cut(text, bounds[text.name == _PROMPT]) for text in card.texts)) for card in found
    )
    return Cards(tuple(cut), bounds[False], bounds[True])


def _bound(sizes: Sequence[int], room: int) -> int | None:
    bound = common_bound(sizes, room, MOST)
    return bound if any(taken > bound for taken in sizes) else None


def _cut(text: Text, bound: int | None) -> Text:
    return text if bound is None else replace(text, text=clipped(text.text, bound))


def _cards(evaluation: Evaluation, drawn: DrawnTurns, folder: Path) -> Iterator[Card]:
    prefix = f"{evaluation.partition.suite}/"
    wanted = {turn_id.removeprefix(prefix).rpartition("#")[0] for turn_id, _ in drawn.kinds}
    for _, trace in traces(evaluation, wanted):
        for turn in trace["turns"]:
            kind = drawn.kinds.get((turn["turn_id"], turn["sample"]))
            if kind is not None:
                yield Card(
                    place(turn["turn_id"], turn["sample"]),
                    kind,
                    short(turn["question"] or "", _SUMMARY),
                    tuple(_texts(turn)),
                    tuple(_conversation(trace["turns"], turn, drawn)),
                    ", ".join(spent(turn, len(turn["attempts"]))),
                    page_link(evaluation.exported, turn["turn_id"], turn["sample"], folder),
                )


def _texts(turn: Row) -> Iterator[Text]:
    """Yields the texts of a turn, each already cut to the longest allowed length to save memory."""
    last = turn["attempts"][-1] if turn["attempts"] else {}
    printed = turn["expected_printed"]
    told = {
        "Question": turn["question"],
        "Expected": turn["expected"],
        "Expected, as printed": None if printed == turn["expected"] else printed,
        "Gold": None if turn["gold"] is None else shown_json(turn["gold"]),
        "Expected rows": _rows_text(turn["expected_result"]),
        "Answer": _said(turn["answer"], "answer"),
        "Returned rows": _rows_text(last.get("result")),
    }
    yield from _present(told)
    for attempt in turn["attempts"]:
        yield from _attempt(attempt)
    yield from _present({"Metrics": _metrics(turn["metrics"]), _PROMPT: last.get("prompt")}, folded=True)


def _attempt(attempt: Row) -> Iterator[Text]:
    name = f"Recovery attempt {attempt['number']}" if attempt["number"] else "Response"
    error = f"{attempt['error_class']}: {attempt['error_message']}" if attempt["error_class"] else None
    yield from _present({name: _said(attempt["response"], "response"), "Error": error})
    yield from _present({"Reasoning": attempt["reasoning"]}, folded=True)


def _said(text: str | None, what: str) -> str:
    return f"no {what}" if text is None else text or f"(an empty {what})"


def _present(texts: Mapping[str, str | None], *, folded: bool = False) -> Iterator[Text]:
    for name, text in texts.items():
        if text:
            yield Text(name, clipped(text, MOST) if len(text) > MOST // 4 else text, folded)


def _rows_text(result: Any) -> str | None:
    """Returns a result that is a table as lines of cells, or None if it is no table."""
    if not isinstance(result, Mapping) or not result.get("columns") or not isinstance(result.get("rows"), list):
        return None
    rows = [result["columns"], *result["rows"][:_MOST_ROWS]]
    lines = [" | ".join("NULL" if cell is None else str(cell) for cell in row) for row in rows]
    more = (result.get("row_count") or len(result["rows"])) - min(len(result["rows"]), _MOST_ROWS)
    return "\n".join(lines + ([f"… and {more:,} rows more"] if more > 0 else []))


def _metrics(metrics: Mapping[str, Row]) -> str:
    """Returns one line per metric that applies, with its reason."""
    lines = []
    for name, found in metrics.items():
        value = found.get("label") if found["value"] is None else shown.number(found["value"])
        label = f" {found['label']}" if found["value"] is not None and found.get("label") else ""
        why = found.get("error") or found.get("reason")
        if value is not None or why:
            lines.append(f"{name}: {value or '–'}{label}" + (f" ({why})" if why else ""))
    return "\n".join(lines)


def _conversation(turns: Sequence[Row], this: Row, drawn: DrawnTurns) -> Iterator[ShortTurn]:
    same = [turn for turn in turns if turn["sample"] == this["sample"]]
    for turn in same if len(same) > 1 else ():
        yield ShortTurn(
            place(turn["turn_id"], turn["sample"]),
            short(turn["question"] or "", _SUMMARY),
            short(_said(turn["answer"], "answer"), _SUMMARY),
            verdict(turn["correct"]),
            turn is this,
            (turn["turn_id"], turn["sample"]) in drawn.kinds,
        )


_MOST_MISTAKES, _FEWEST_OF_A_KIND = 25, 3
"""Of each kind some, as far as there is room, so that rare kinds are seen too."""
_LONGEST_QUESTION, _LONGEST = 160, 400


@value
class Mistakes:
    """The mistakes that the page shows first.

    Attributes:
        title: how many there are, and how many of them are shown.
        lines: of each its place, its kind, the question, what is wrong, and whether the page shows the turn below, so
            that the line can link to it.
        sql: the query.
    """

    title: str
    lines: Sequence[Row]
    sql: str


def mistakes_shown(evaluation: Evaluation, drawn: DrawnTurns) -> Mistakes:
    """Returns the mistakes, at most 25; `drawn` are the turns that the page shows in full."""
    found = mistakes(evaluation)
    # The first mistakes of each kind, in the order of all; further ones while there is room.
    ranks = [number >= _FEWEST_OF_A_KIND for rows in kinds_of(found).values() for number in range(len(rows))]
    kept = sorted(range(len(found)), key=ranks.__getitem__)[:_MOST_MISTAKES]
    chosen = [found[number] for number in sorted(kept)]
    some = f"{len(chosen)} of them are here" if len(chosen) < len(found) else "all are here"
    are = "is" if len(found) == 1 else "are"
    title = f"{len(found):,} of {shown.turns(evaluation.turns)} {are} wrong; {some}, the most frequent kind first."
    return Mistakes(title, [_line(row, drawn) for row in chosen], mistakes_query(evaluation.partition))


def _line(row: Row, drawn: DrawnTurns) -> Row:
    turn = row["turn_id"], row["sample"]
    question, wrong = short(row["question"] or "", _LONGEST_QUESTION), clipped(wrong_text(row), _LONGEST)
    return {
        "place": place(*turn),
        "link": turn in drawn.kinds,
        "kind": row["kind"],
        "question": question,
        "wrong": wrong,
    }
