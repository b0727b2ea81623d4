"""Defines a section of the page about a turn: its content and its template."""

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
        template: its template, which receives `seen`, `visit` and the result of `values`.
        values: returns the values for the template, or None to omit the section.
        exported: whether exported folders include it; such a section uses only this evaluation and has no forms.
    """

    name: str
    title: str
    template: str
    values: Callable[[TurnSeen], Mapping[str, Any] | None]
    exported: bool = False
