"""What the command line draws: progress bars, the headline table, query results."""

import csv
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from eval_pipeline.operations.doctor import Finding
    from eval_pipeline.operations.headline import Headline
    from eval_pipeline.operations.planning import Bound, RunPlan

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)
REFRESH = 4
"""Redraws a second; each costs CPU."""
HIDDEN_S = 2.0
"""Seconds before a bar is shown, so that what is over soon does not flicker."""
FOLDED = 14
"""Characters a line that a longer text is folded to at least."""
_LOGGED = "eval_pipeline"


class _Count(MofNCompleteColumn):
    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class _LateBars(Bars):
    """Bars that show only what has taken a while already."""

    def get_renderables(self) -> Iterable[Table]:
        """What is drawn: a table of the tasks begun some seconds ago."""
        yield self.make_tasks_table([task for task in self.tasks if (task.elapsed or 0) >= HIDDEN_S])


class _Notes(logging.Handler):
    """Shows what is logged as remarks, which come above the bars."""

    def emit(self, record: logging.LogRecord) -> None:
        """Shows a record."""
        note(f"{record.levelname.lower()}: {record.getMessage()}")


class ProgressBars:
    """Progress as bars on the terminal, and warnings above them; no bars where standard error is no terminal."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), _Count(), TimeRemainingColumn())
        self._bars = _LateBars(
            *columns, console=errors, transient=True, refresh_per_second=REFRESH, disable=not errors.is_terminal
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
        """Begins a bar; a total of 0 stands for one that nobody knows."""
        self._tasks[label] = self._bars.add_task(label, total=total or None)

    def advance(self, label: str, steps: int = 1) -> None:
        """Moves a bar on."""
        if not self._bars.disable:  # rich keeps times for its estimate even of bars that nobody sees
            self._bars.advance(self._tasks[label], steps)

    def finish(self, label: str) -> None:
        """Takes a bar away."""
        self._bars.remove_task(self._tasks.pop(label))


def fail(message: str) -> None:
    """Shows an error."""
    errors.print(f"[bold red]error:[/] {_escaped(message)}", highlight=False, soft_wrap=True)


def note(message: str) -> None:
    """Shows a remark that is no result."""
    errors.print(_escaped(message), highlight=False, soft_wrap=True)


def headline_table(suite: str, headlines: Sequence["Headline"]) -> Table:
    """The headline of a suite: accuracy with its interval, tokens, cost per correct answer, ceiling.

    Two lines a model version, so that it fits into 80 columns.
    """
    from eval_pipeline.stages.checks.readable import WARN_BELOW

    title = f"{suite} · 95% intervals · success: every turn of a conversation right"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model version", overflow="fold", min_width=20)
    for name in ("accuracy", "tokens,\nper success", "dollars,\nper success"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ceiling", no_wrap=True)
    for found in headlines:
        correct, cost = found.overall["correct"], found.cost
        turns = f"{correct['n']} turn{'s' * (correct['n'] != 1)}"
        facts = ["simulated"] * found.simulated + [turns] + ["part"] * (found.scope != "full")
        asked, readable = found.coverage.asked or 0, found.coverage.readable or 0
        if readable < WARN_BELOW * asked and not found.simulated:
            facts.append(f"{_percent(readable / asked)} readable")
        table.add_row(
            f"{found.partition.model_version}\n[dim]{', '.join(facts)}[/]",
            _rate(correct),
            f"{_number(cost['tokens_total'], ',.0f')}\n{_number(cost['tokens_per_success'], ',.0f')}",
            f"{_dollars(cost['usd_total'])}\n{_number(cost['usd_per_success'], ',.4f')}",
            ceiling_text(found.ceiling),
        )
    return table


def coverage_lines(headlines: Sequence["Headline"]) -> Iterator[str]:
    """How far the turns of each evaluation got, a line a model version, and what is missing below it."""
    for found in headlines:
        yield f"coverage: {found.partition.model_version}: {found.coverage.text()}"
        if gaps := found.coverage.gaps():
            yield f"          {gaps}"


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> None:
    """Prints the rows of a query as `table`, `csv` or `json`; tables round, and have a line a value if too wide."""
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(cell) for cell in row] if sys.stdout.isatty() else row for row in rows)
    elif form == "json":
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        print(json.dumps(records, default=str, indent=2, ensure_ascii=False))
    else:
        names, shown = [_escaped(name) for name in columns], [[_escaped(_shown(cell)) for cell in row] for row in rows]
        if rows and _least_width(names, shown) > console.width:
            for place, row in enumerate(shown, start=1):
                console.print(f"row {place:,} of {len(shown):,}", style="dim", highlight=False)
                console.print(_record(names, row))
        else:
            console.print(_table(names, shown))


def _shown(cell: Any) -> str:
    """A value as a table shows it: six digits are enough to read, and `csv` and `json` have them all."""
    match cell:
        case None:
            return "NULL"
        case float():
            return f"{cell:.6g}" if abs(cell) < 1e6 else f"{cell:.1f}"
    return str(cell)


def _least_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Characters that a table takes at least to be read: long texts may be folded, but not to a few letters a line."""
    longest = (max(map(len, column)) for column in zip(names, *rows, strict=True))
    return sum(min(width, FOLDED) + len("│  ") for width in longest) + len("│")


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table()
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _record(names: Sequence[str], row: Sequence[str]) -> Table:
    """One row with a line a value."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, cell in zip(names, row, strict=True):
        table.add_row(f"  {name}", cell)
    return table


COUNTS = {"counted": "", "sampled": ", counted on a sample", "estimated": ", estimated from the length"}
"""How input tokens became known."""


def plan_lines(found: "RunPlan") -> Iterator[str]:
    """What a run of one suite with one model version would ask and cost at most, a line each."""
    bound, recovery = found.generations, found.recovery
    yield f"{found.suite} · {found.model_version}"
    if found.how == "recorded":
        yield f"  turns     {found.turns:,}, read from imported predictions: nobody is asked, nothing is spent"
        return
    yield f"  turns     {found.turns:,}, in the journal {found.journalled:,}, calls to make {bound.calls:,}"
    if found.how in {"told", "unknown"}:
        yield from _application_lines(found)
        return
    cache = f"; up to {found.cacheable:.0%} from a cache" if found.cacheable else ""
    yield f"  input     {bound.input_tokens:,} tokens{COUNTS[found.how]}{cache}"
    if found.why:
        yield f"            not counted: {found.why}"
    yield f"  output    at most {bound.output_tokens:,} tokens"
    yield "  cost      " + _at_most(bound.usd)
    if recovery.calls:
        yield (
            f"  recovery  at most {recovery.calls:,} calls more, {recovery.input_tokens:,} tokens in, "
            f"{recovery.output_tokens:,} out"
        )
        yield "            " + _at_most(recovery.usd)
    if found.open_batches:
        yield f"  batches   handed in before and open: {found.open_batches}; {found.in_batches:,} turns wait for them"


def _application_lines(found: "RunPlan") -> Iterator[str]:
    """The part of a plan on an application, which makes its own prompt: what it told is all that is known."""
    if found.answers:
        yield f"  expected  {_expected(found.generations)}, going by {found.answers:,} answers on record"
    else:
        yield "  expected  unknown: the application makes its own prompt, and no answer on record tells what it took"
    if found.recovery.calls:
        known = f": {_expected(found.recovery)}" if found.answers else ""
        yield f"  recovery  at most {found.recovery.calls:,} calls more{known}"


def _expected(bound: "Bound") -> str:
    tokens = [
        f"{'unknown' if count is None else format(count, ',')} tokens {way}"
        for count, way in ((bound.input_tokens, "in"), (bound.output_tokens, "out"))
    ]
    return ", ".join([*tokens, "dollars unknown" if bound.usd is None else f"${bound.usd:,.4f}"])


def _at_most(usd: float | None) -> str:
    return "unknown: the model has no price" if usd is None else f"at most ${usd:,.4f}, as if no cache were hit"


def finding_line(finding: "Finding") -> Text:
    """A line of `doctor`."""
    line = Text("ok   " if finding.fine else "FAIL ", style="green" if finding.fine else "bold red")
    line.append(f"{finding.topic}: {finding.text}", style="default")
    if not finding.fine and finding.remedy:
        line.append(f" — {finding.remedy}", style="default")
    return line


CEILINGS = {
    "no ceiling observed": "none seen",
    "below threshold at the lowest level": "below the lowest",
    "insufficient data": "too few turns",
}
"""Verdicts of `complexity_ceiling` where there is no ceiling, short enough for a column."""


def ceiling_text(ceiling: Mapping[str, Any]) -> str:
    """The ceiling as people read it: a level with its interval, or why there is none."""
    if ceiling["ceiling"] is None:
        return CEILINGS[ceiling["verdict"]]
    low, high = ("…" if end is None else format(end, "g") for end in (ceiling["ceiling_low"], ceiling["ceiling_high"]))
    return f"{ceiling['ceiling']:g} {ceiling['axis'].replace('_', ' ')}\n[{low}, {high}]"


def _rate(row: Any) -> str:
    if row["mean"] is None:
        return str(row["reason"])
    if row["low"] is None:
        return f"{_percent(row['mean'])}\n(no interval)"  # `statistics` says why, the line is short
    return f"{_percent(row['mean'])}\n[{_percent(row['low'])}, {_percent(row['high'])}]"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _dollars(value: float | None) -> str:
    """A first try with one case costs a fraction of a cent, and not nothing."""
    return _number(value, ",.2f" if value is None or value >= 1 else ",.4f")


# What steers a terminal: C0 but tab and newline, DEL, C1. Answers of models are shown, never obeyed.
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)], "\ufffd")


def _cell(value: Any) -> Any:
    return value.translate(_CONTROLS) if isinstance(value, str) else value


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text.translate(_CONTROLS))
