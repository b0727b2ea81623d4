"""Formats of other tools' logs, which plug-ins add."""

from dataclasses import dataclass
from typing import Any

from eval_pipeline.core.installed.plugins import Plugin, Registry


@dataclass(frozen=True, slots=True)
class LogForm:
    """A log format.

    Attributes:
        place: place of its reader: a function from a file to `Entry` values. It is called in a child process and raises
            InputError with file, line and field.
        what: description of such a file, for people.
        folders: whether a folder of such files can be read, too.
        marks: what such a file is told by: alternatives, each of paths that its first entry has (`logs.head`).
        begins: how such a file begins if it is neither text nor an archive; a regular expression of bytes.
    """

    place: str
    what: str
    folders: bool = False
    marks: tuple[tuple[str, ...], ...] = ()
    begins: bytes = b""


def _form(plugin: Plugin, value: Any) -> LogForm:
    if not isinstance(value, LogForm):
        raise plugin.error("is no LogForm")
    return value


ALL_LOGS: Registry[LogForm] = Registry("logs", {}, _form)
"""Formats by name; each gives a command `eval-pipeline import <name>`."""
