"""Formats texts for readers of a page; `core.shown` formats figures."""

import json
from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.shown import UNKNOWN


def short(text: str | None, most: int = 300) -> str:
    """Returns a text for a table cell: on one line, cut if it is long."""
    if text is None:
        return UNKNOWN
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[:most]}…"


def place(turn_id: str, sample: int = 0) -> str:
    """Returns the place of a turn in its suite: `<case>#<index>`, followed by `~<sample>` from sample 1 on."""
    return turn_id.partition("/")[2] + (f"~{sample}" if sample else "")


def shown_json(value: Any) -> str:
    """Formats a value; an object becomes lines of `name: value` without its empty entries."""
    if not isinstance(value, Mapping):
        return _json_text(value)
    told = ((name, found) for name, found in value.items() if found not in (None, "", [], {}))
    return "\n".join(f"{name}: {_json_text(found)}" for name, found in told)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
