"""A part of the page about a turn: what it shows, and the template that shows it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eval_pipeline.view.turn_seen import TurnSeen


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page about a turn.

    Attributes:
        name: its anchor.
        title: its heading.
        template: that shows it; it has `seen`, `visit` and what `values` gives.
        values: what the template takes; None where there is nothing to show, and then no section either.
        exported: folders that are handed on have it too: it tells of this evaluation alone, and asks for nothing.
    """

    name: str
    title: str
    template: str
    values: Callable[[TurnSeen], Mapping[str, Any] | None]
    exported: bool = False
