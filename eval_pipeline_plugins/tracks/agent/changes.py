"""Shows what an attempt has changed: texts against those of the world, databases by their rows, others by size."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json, Ran
from eval_pipeline.sandbox.inside.cut_text import cut_text
from eval_pipeline.sandbox.world.changes import ChangedFile, changed
from eval_pipeline.tracks.shown.cards import Card, CardCell, CodeCard, TableCard, Text

_MOST_FILES, _MOST_SHOWN = 100, 5
_MOST_LINES, _MOST_BYTES, _MOST_TEXT = 2_000, 200_000, 4_000


def changes(seen: Any) -> Iterator[Card]:
    """Yields a table of what is changed, and of the first texts how they differ; `seen` is an `AgentSeen`."""
    outcome = seen.attempts[-1].outcome if seen.attempts else None
    state: Mapping[str, Json] = (outcome.value["end_state"] or {}) if isinstance(outcome, Ran) else {}
    if not state:
        return
    world, rows, texts = seen.case.context.world, list[tuple[Text, ...]](), list[Card]()
    databases = {file: name for name, (file, _) in world.files.items()}
    for path, told in sorted(state.items())[:_MOST_FILES]:
        if path in databases:
            rows.append((path, _of_database(databases[path], seen)))
            continue
        before = world.began(path)
        lines = _difference(before, _read(told))
        if lines:
            added, gone = (sum(line.startswith(sign) for line in lines) for sign in "+-")
            rows.append((path, CardCell("a new text" if before is None else "a text", None, f"+{added} −{gone} lines")))
            texts.append(CodeCard(path, cut_text("\n".join(lines), _MOST_TEXT)["text"], "diff"))
        else:
            rows.append((path, _told(told, before)))
    yield TableCard("Changed files", ("file", "now"), rows, left_out=max(len(state) - _MOST_FILES, 0))
    yield from texts[:_MOST_SHOWN]


def _of_database(name: str, seen: Any) -> str:
    """Returns what the check of the end state says about a database."""
    found = [one for one in seen.evidence if one.kind == "state" and "check" in one.details]
    said = [words for one in found for words in str(one.details.get("words") or "").split("; ")]
    mine = [words for words in said if words.startswith((f"{name}.", f"{name} ")) or f" {name}" in words]
    if mine:
        return "; ".join(mine)
    return "a database, as the solution leaves it" if found else "a database"


def _difference(before: Path | None, after: ChangedFile | None) -> list[str]:
    """Returns how a text differs from that of the world; nothing for what is no text, or is too long."""
    body = b"" if after is not None and after.kind == "removed" else after.body if after is not None else None
    if body is None or max(len(body), before.stat().st_size if before else 0) > _MOST_BYTES:
        return []
    both = before.read_bytes() if before else b"", body
    try:
        texts = [one.decode().splitlines() for one in both]
    except UnicodeDecodeError:
        return []
    if any(b"\0" in one for one in both) or max(map(len, texts)) > _MOST_LINES:
        return []
    return list(unified_diff(texts[0], texts[1], lineterm=""))[2:]


def _read(told: Json) -> ChangedFile | None:
    try:
        return changed(told)
    except ValueError:
        return None


def _told(told: Json, before: Path | None) -> str:
    match told:
        case None:
            return "removed"
        case {"size": int() as size}:
            return f"{size:,} bytes" if before is None else f"{size:,} bytes, before {before.stat().st_size:,}"
        case {"left_out": True}:
            return "too large to be kept"
    return json_text(told)
