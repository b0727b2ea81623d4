"""The turns of a page, each with all that a person needs to judge it, including gold and conversation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.traces import traces
from eval_pipeline.reports.html.drawing import DrawnTurns, clipped, common_bound, size
from eval_pipeline.reports.places.paths import page_link
from eval_pipeline.reports.queries import RIGHT
from eval_pipeline.reports.shown import shown_json

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
    """A short form of one turn of the conversation."""

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

    @property
    def right(self) -> bool:
        """Whether the turn is right."""
        return self.kind == RIGHT


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
    texts = [text for card in found for text in card.texts]
    bounds = [
        _bound([size(text.text) for text in texts if (text.name == _PROMPT) == is_prompt], most)
        for is_prompt, most in ((False, room), (True, prompt_room))
    ]
    return Cards(tuple(_cut(card, *bounds) for card in found), *bounds)


def _bound(sizes: Sequence[int], room: int) -> int | None:
    bound = common_bound(sizes, room, MOST)
    return bound if any(taken > bound for taken in sizes) else None


def _cut(card: Card, bound: int | None, prompt_bound: int | None) -> Card:
    if bound is None and prompt_bound is None:
        return card
    texts = []
    for text in card.texts:
        most = prompt_bound if text.name == _PROMPT else bound
        texts.append(text if most is None else replace(text, text=clipped(text.text, most)))
    return replace(card, texts=tuple(texts))


def _cards(evaluation: Evaluation, drawn: DrawnTurns, folder: Path) -> Iterator[Card]:
    prefix = f"{evaluation.partition.suite}/"
    wanted = {turn_id.removeprefix(prefix).rpartition("#")[0] for turn_id, _ in drawn.kinds}
    for case_id, trace in traces(evaluation, wanted):
        for turn in trace["turns"]:
            kind = drawn.kinds.get((turn["turn_id"], turn["sample"]))
            if kind is not None:
                yield Card(
                    _place(case_id, turn),
                    kind,
                    _one_line(turn["question"] or ""),
                    tuple(_texts(turn)),
                    tuple(_said(case_id, trace["turns"], turn, drawn)),
                    _spent(turn),
                    page_link(evaluation.exported, turn["turn_id"], turn["sample"], folder),
                )


def _place(case_id: str, turn: Row) -> str:
    sample = f"~{turn['sample']}" if turn["sample"] else ""
    return f"{case_id}#{turn['turn_idx']}{sample}"


def _texts(turn: Row) -> Iterator[Text]:
    """Yields the texts of a turn, each already cut to the longest allowed length to save memory."""
    last = turn["attempts"][-1] if turn["attempts"] else {}
    yield from _present("Question", turn["question"])
    yield from _present("Expected", turn["expected"])
    printed = turn["expected_printed"]
    yield from _present("Expected, as printed", None if printed == turn["expected"] else printed)
    yield from _present("Gold", None if turn["gold"] is None else shown_json(turn["gold"]))
    yield from _present("Expected rows", _rows_text(turn.get("expected_result")))
    yield Text("Answer", "no answer" if turn["answer"] is None else _short_of(turn["answer"]))
    yield from _present("Returned rows", _rows_text(last.get("result")))
    for attempt in turn["attempts"]:
        yield from _attempt(attempt)
    yield from _present("Metrics", _metrics(turn["metrics"]), folded=True)
    yield from _present(_PROMPT, last.get("prompt"), folded=True)


def _attempt(attempt: Row) -> Iterator[Text]:
    number = attempt.get("number", 0)
    name = f"Recovery attempt {number}" if number else "Response"
    said = attempt.get("response")
    yield Text(name, "no response" if said is None else _short_of(said) or "(an empty response)")
    if attempt.get("error_class"):
        yield Text("Error", _short_of(f"{attempt['error_class']}: {attempt['error_message']}"))
    yield from _present("Reasoning", attempt.get("reasoning"), folded=True)


def _present(name: str, text: str | None, *, folded: bool = False) -> Iterator[Text]:
    if text:
        yield Text(name, _short_of(text), folded)


def _short_of(text: str) -> str:
    return clipped(text, MOST) if len(text) > MOST // 4 else text


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


def _said(case_id: str, turns: Sequence[Row], this: Row, drawn: DrawnTurns) -> Iterator[ShortTurn]:
    same = [turn for turn in turns if turn["sample"] == this["sample"]]
    for turn in same if len(same) > 1 else ():
        right = turn["correct"]
        yield ShortTurn(
            _place(case_id, turn),
            _one_line(turn["question"] or ""),
            _one_line("no answer" if turn["answer"] is None else turn["answer"]),
            "not scored" if right is None else "right" if right else "wrong",
            turn is this,
            (turn["turn_id"], turn["sample"]) in drawn.kinds,
        )


def _one_line(text: str) -> str:
    line = " ".join(text[: 4 * _SUMMARY].split())
    return line if len(line) <= _SUMMARY else f"{line[:_SUMMARY]}…"


def _spent(turn: Row) -> str:
    parts = [f"{shown.count(turn['tokens'])} tokens", shown.milliseconds(turn["latency_ms"])]
    if turn["usd"] is not None:
        parts.append(shown.dollars(turn["usd"]))
    count = len(turn["attempts"])
    parts.append(f"{count} attempt{'s' if count != 1 else ''}")
    if turn["complexity"] is not None:
        parts.append(f"complexity {turn['complexity']}")
    return ", ".join(parts)
