"""The failed turns of a page: each with what a person needs to see why, within the room that the page has."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.exported import turn_page
from eval_pipeline.reports.paths import trace_file
from eval_pipeline.reports.shown import shown_count, shown_dollars, shown_time
from eval_pipeline.store import tables

_ROOM = 2_300_000
_MARKUP = 750
_LEAST, _MOST = 320, 6_000
_SUMMARY = 150
_BATCH = 500
_ATTEMPTS = 3
_RIGHT_FORM = "wrong_answer"


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A failed turn as the page shows it.

    Attributes:
        place: `<case>#<index>`, with `~<sample>` from sample 1 on.
        kind: its failure mode, else its error class.
        facts: names and short values.
        texts: names and texts that keep their line ends.
        trace: relative link to the whole conversation.
        page: relative link to its page where the evaluation was exported; else None.
    """

    place: str
    kind: str
    short: str
    facts: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]
    trace: str
    page: str | None


def failed_turns(evaluation: Evaluation, folder: Path) -> Iterator[FailedTurn]:
    """Every failed turn, in the suite's order; the more there are, the shorter their texts.

    Args:
        evaluation: whose turns.
        folder: that the page is written into.
    """
    errors = evaluation.read(tables.ERRORS)
    room = _ROOM // max(errors.num_rows, 1) - _MARKUP
    room = max(_LEAST, min(_MOST, room))
    results = evaluation.results.select(["turn_id", "sample", "tokens", "usd", "latency_ms"]).to_pylist()
    spent = {(row["turn_id"], row["sample"]): row for row in results}
    for batch in errors.to_batches(max_chunksize=_BATCH):
        for row in batch.to_pylist():
            page = _exported_page(evaluation, row, folder)
            yield _failed(row, spent[row["turn_id"], row["sample"]], room, page)


def kind_of(row: Row) -> str:
    """What went wrong, in a word: a row of `errors`."""
    return str(row["failure_mode"] or row["error_class"])


def clipped(text: str, most: int) -> str:
    """A text that takes at most that many bytes of a page, with a note where it was cut."""
    taken = _bytes(text)
    if taken <= most:
        return text
    return f"{text[: most * len(text) // taken]} … [cut: {len(text):,} characters]"


def _bytes(text: str) -> int:
    """What a text takes of the page when it is escaped."""
    return len(text.encode()) + 4 * (text.count('"') + text.count("'")) + 3 * (text.count("<") + text.count(">"))


def _exported_page(evaluation: Evaluation, row: Row, folder: Path) -> str | None:
    if evaluation.exported is None:
        return None
    page = evaluation.exported / turn_page(row["turn_id"], row["sample"])
    return quote(os.path.relpath(page, folder), safe="/@+~") if page.is_file() else None


def _failed(row: Row, spent: Row, room: int, page: str | None) -> FailedTurn:
    sample = f"~{row['sample']}" if row["sample"] else ""
    question = row["question"] or ""
    got = "no answer" if row["answer"] is None else row["answer"]
    facts = [("Question", clipped(question, room // 5))] if len(question) > _SUMMARY else []
    facts += [("Expected", clipped(row["expected_answer"] or "–", room // 6)), ("Answer", clipped(got, room // 6))]
    if row["error_class"] != _RIGHT_FORM:
        facts.append(("Error", clipped(f"{row['error_class']}: {row['error_message']}", room // 5)))
    facts.append(("Spent", _spent(row, spent)))
    return FailedTurn(
        f"{row['case_id']}#{row['turn_index']}{sample}",
        kind_of(row),
        _one_line(question),
        tuple(facts),
        tuple(_attempts(row["error_context"], room // 2)),
        quote(trace_file(row["case_id"]), safe="/@+~"),
        page,
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY else f"{line[:_SUMMARY]}…"


def _spent(row: Row, spent: Row) -> str:
    parts = [f"{shown_count(spent['tokens'])} tokens", shown_time(spent["latency_ms"])]
    if spent["usd"] is not None:
        parts.append(shown_dollars(spent["usd"]))
    parts.append(f"{row['attempts']} attempt{'s' if row['attempts'] != 1 else ''}")
    if row["complexity"] is not None:
        parts.append(f"complexity {row['complexity']}")
    return ", ".join(parts)


def _attempts(context: str, room: int) -> Iterator[tuple[str, str]]:
    """The last attempts: response, what executing it gave, and why it failed."""
    attempted: list[dict[str, Any]] = json.loads(context or "{}").get("attempted", [])
    shown = attempted[-_ATTEMPTS:]
    for attempt in shown:
        said = attempt.get("response")
        parts = [clipped("no response" if said is None else said, room * 2 // (3 * len(shown)))]
        for name in ("result", "error"):
            if attempt.get(name) is not None:
                value = attempt[name]
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                parts.append(clipped(f"{name}: {text}", room // (3 * len(shown))))
        number = attempt.get("number", 0)
        yield (f"Recovery attempt {number}" if number else "Response", "\n".join(parts))
