"""The terminal output of the command line: progress bars, the headline table and query results."""

import csv
import json
import logging
import re
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleDimensions
from rich.progress import BarColumn, MofNCompleteColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from eval_pipeline.core import shown

if TYPE_CHECKING:
    from eval_pipeline.operations.upkeep.doctor import Finding


IN_FILES = 120
"""Width of tables in files and pipes, where nobody says how wide they are."""


class Plain(Console):
    """A console that knows what it writes to: people's terminal, or a file."""

    @property
    def is_terminal(self) -> bool:
        """Whether people look at it; nothing but plain text goes into files and pipes, whatever FORCE_COLOR says."""
        return self.file.isatty()

    def render_str(self, text: str, **options: Any) -> Text:
        """Renders a text; on a terminal, no text controls it, whoever wrote it: styles are markup."""
        return super().render_str(shown.visible_text(text) if self.is_terminal else text, **options)

    @property
    def size(self) -> ConsoleDimensions:
        """The room for text, which files have more of."""
        found = super().size
        return found if self.is_terminal or self._width is not None else ConsoleDimensions(IN_FILES, found.height)

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        """Sets width and height."""
        self._width, self._height = new


class _Terminal(Plain):
    def on_broken_pipe(self) -> None:
        raise  # called while the error is handled; what it means is decided by `command_line`


console = _Terminal(emoji=False)
errors = Plain(stderr=True, emoji=False)
REFRESH = 4
"""How often per second bars are redrawn; each time costs CPU."""
HIDDEN_S = 2.0
"""Seconds before a bar is shown, so that short tasks do not flicker."""
FOLDED = 12
"""The least number of characters per line when a longer text is wrapped."""
_GAP = 2
"""Spaces between columns."""
_SEPARATED = 10_000
"""The least whole number with separators of thousands: no year has them."""
TELL_S = 10.0
"""Seconds between two lines of progress in files and pipes."""
SETTLED_S = 10.0
"""Seconds that the remaining time is told by, and before it is: what is in the journal passes at once at first."""
_LOGGED = "eval_pipeline"


class _Count(MofNCompleteColumn):
    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class _Remaining(TimeRemainingColumn):
    def render(self, task: Task) -> Text:
        return super().render(task) if (task.elapsed or 0) >= SETTLED_S else Text()


class _LateBars(Bars):
    """Progress bars that only appear for tasks that have run for a while."""

    def get_renderables(self) -> Iterable[Table]:
        """Returns a table of the tasks that started some seconds ago."""
        yield self.make_tasks_table([task for task in self.tasks if (task.elapsed or 0) >= HIDDEN_S])


class _Notes(logging.Handler):
    """Shows log messages as notes above the bars."""

    def emit(self, record: logging.LogRecord) -> None:
        """Shows a log record."""
        note(f"{record.levelname.lower()}: {record.getMessage()}")


class _Lines:
    """Tells progress in lines, where nobody would see bars."""

    def __init__(self) -> None:
        self._told = time.monotonic() - TELL_S
        self._counts: dict[str, tuple[int, int]] = {}

    def add(self, label: str, steps: int = 0, total: int | None = None) -> None:
        """Counts steps of a task, and says how far it is if the last line is long ago."""
        done, of = self._counts.get(label, (0, 0))
        done, of = (0, total) if total is not None else (done + steps, of)
        self._counts[label] = done, of
        if (now := time.monotonic()) - self._told >= TELL_S:
            self._told = now
            note(f"{label}: {shown.count(done)} of {shown.count(of)}" if of else label)


class ProgressBars:
    """Shows progress as bars on the terminal, with warnings above them; no bars if standard error is not a terminal."""

    def __init__(self, *, lines: bool = False) -> None:
        """Shows nothing yet; with `lines`, a line every ten seconds takes the place of bars in files and pipes."""
        self._lines = _Lines() if lines and not errors.is_terminal else None
        columns = (TextColumn("{task.description}"), BarColumn(), _Count(), _Remaining())
        self._bars = _LateBars(
            *columns,
            console=errors,
            transient=True,
            refresh_per_second=REFRESH,
            speed_estimate_period=SETTLED_S,
            disable=not errors.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._notes = _Notes(logging.WARNING)

    def __enter__(self) -> "ProgressBars":
        logging.getLogger(_LOGGED).addHandler(self._notes)
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()
        logging.getLogger(_LOGGED).removeHandler(self._notes)

    def start(self, label: str, total: int) -> None:
        """Starts a bar; a total of 0 means that it is unknown."""
        self._tasks[label] = self._bars.add_task(label, total=total or None)
        if self._lines is not None:
            self._lines.add(label, total=total)

    def advance(self, label: str, steps: int = 1) -> None:
        """Advances a bar."""
        if not self._bars.disable:  # rich stores times for its estimate even if bars are disabled
            self._bars.advance(self._tasks[label], steps)
        elif self._lines is not None:
            self._lines.add(label, steps)

    def finish(self, label: str) -> None:
        """Removes a bar."""
        self._bars.remove_task(self._tasks.pop(label))


def fail(message: str) -> None:
    """Shows an error."""
    errors.print(f"[bold red]error:[/] {_escaped(message)}", highlight=False, soft_wrap=True)


def note(message: str) -> None:
    """Shows a remark that is not a result."""
    errors.print(_escaped(message), highlight=False, soft_wrap=True)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> None:
    """Prints a query's rows as `table`, `csv` or `json`.

    Tables round numbers, and too wide ones have one line per value.
    """
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        told = [columns, *rows]
        writer.writerows([_cell(cell) for cell in row] if sys.stdout.isatty() else row for row in told)
    elif form == "json":
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        print(shown.visible_json(json.dumps(records, default=str, indent=2, ensure_ascii=False)))
    else:
        names, cells = [_escaped(name) for name in columns], [[_escaped(_shown(cell)) for cell in row] for row in rows]
        fits = least_width(names, cells) <= console.width
        heads = names if fits else [name.replace("_", "_\n") for name in names]
        if rows and least_width(heads, cells) > console.width:
            for place, row in enumerate(cells, start=1):
                console.print(f"row {place:,} of {len(cells):,}", style="dim", highlight=False)
                console.print(_record(names, row))
        else:
            console.print(_table(heads, cells))


def _shown(cell: Any) -> str:
    """Formats a value for a table; `csv` and `json` have all digits."""
    match cell:
        case None:
            return "NULL"
        case float():
            return shown.number(cell)
        case int() if abs(cell) >= _SEPARATED:
            return shown.number(cell)
    return str(cell)


def least_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Returns the least width of a readable table, in which long texts are wrapped, but not to very short lines."""
    return sum(_widths(names, rows, FOLDED)) + _GAP * (len(names) - 1)


def _widths(names: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> list[int]:
    """Returns the width of each column if no line of a text is longer than `most`."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return [
        max(*map(len, name.split("\n")), 0, *(min(len(cell), most) for cell in column))
        for name, column in zip(names, columns, strict=True)
    ]


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    room = console.width - _GAP * (len(names) - 1)
    widths = _shared_out(_widths(names, rows, FOLDED), _widths(names, rows, room), room)
    for name, width in zip(names, widths, strict=True):
        table.add_column(name, overflow="fold", width=width)
    for row in rows:
        table.add_row(*(_broken(cell, width) for cell, width in zip(row, widths, strict=True)))
    return table


def _shared_out(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Returns widths that together fit, where they can: what is left is for all alike, those that want little first."""
    widths, left = list(least), room - sum(least)
    for waiting, place in enumerate(sorted(range(len(least)), key=lambda one: wanted[one] - least[one])):
        more = max(0, min(wanted[place] - least[place], left // (len(least) - waiting)))
        widths[place] += more
        left -= more
    return widths


def _broken(text: str, width: int) -> str:
    """Breaks words that are longer than a line after `_`, `-` and the like, where they have them."""

    def lines(word: re.Match[str]) -> str:
        found = [""]
        for piece in re.split(r"(?<=[_\-+/#.,])", word[0]):
            if found[-1] and len(found[-1]) + len(piece) > width:
                found.append("")
            found[-1] += piece
        return "\n".join(found)

    return re.sub(rf"\S{{{width + 1},}}", lines, text)


def _record(names: Sequence[str], row: Sequence[str]) -> Table:
    """Formats one row with one line per value."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, cell in zip(names, row, strict=True):
        table.add_row(f"  {name}", cell)
    return table


def finding_line(finding: "Finding") -> Text:
    """Formats one line of `doctor`'s output."""
    line = Text("ok   " if finding.fine else "FAIL ", style="green" if finding.fine else "bold red")
    line.append(shown.visible_text(f"{finding.topic}: {finding.text}"), style="default")
    if not finding.fine and finding.remedy:
        line.append(shown.visible_text(f" — {finding.remedy}"), style="default")
    return line


# Control characters that affect a terminal (C0 except tab and newline, DEL, C1). Model answers must not use them.
def _cell(value: Any) -> Any:
    return shown.visible_text(value) if isinstance(value, str) else value


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(shown.visible_text(text))
