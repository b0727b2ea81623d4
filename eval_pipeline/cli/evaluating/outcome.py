"""How a run ends: one table of suites and model versions, what is missing, and where to look."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.markup import render
from rich.table import Table

from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.covering.left_out import sentences
from eval_pipeline.core.model import Partition

if TYPE_CHECKING:
    from eval_pipeline.core.home import Home
    from eval_pipeline.operations.ci.gates import GateVerdict
    from eval_pipeline.operations.runs.headline import Headline
    from eval_pipeline.workspace.workspace import Workspace

Row = Mapping[str, Any]
COLUMNS = ("", "accuracy [95%]", "turns", "change\nsince", "a right\nanswer", "look at")
_REMARK = 18
"""Characters that what to look at needs for a column of its own."""
_STAND_IN = "simulated"
"""What is said of a model version, whatever the suite."""
_LOST = {"loss": "loss", "drift_down": "worse than at first"}
"""Verdicts of a date that somebody must look at."""


def run_shown(headlines: "Sequence[Headline]", trends: "Mapping[Partition, Row]", room: int) -> "Iterator[Table | str]":
    """Yields the table of a run; where it is too narrow, what to look at comes in lines of its own below.

    Args:
        headlines: the evaluations, those of a suite beside each other.
        trends: their rows of `trends`, as far as they have one.
        room: characters a line.
    """
    table = run_table(headlines, trends)
    cells = [[str(column.header), *map(str, column.cells)] for column in table.columns[:-1]]
    if (
        sum(max(cell_len(render(line).plain) for cell in column for line in cell.split("\n")) + 2 for column in cells)
        <= room - _REMARK
    ):
        yield table
        return
    yield run_table(headlines, trends, remarks=False)
    for one in headlines:
        remarks = _look_at(one, trends.get(one.partition, {}))
        if told := ", ".join(remark for remark in remarks if remark != _STAND_IN):
            yield f"look at:  {one.partition.suite}: {one.partition.model_version}: {told}"
    if stand_ins := dict.fromkeys(one.partition.model_version for one in headlines if one.simulated):
        yield f"look at:  {', '.join(stand_ins)}: {_STAND_IN}"


def run_table(headlines: "Sequence[Headline]", trends: "Mapping[Partition, Row]", *, remarks: bool = True) -> Table:
    """Returns a line for each evaluation, below its suite: accuracy, change, cost of a right answer, what to look at.

    Args:
        headlines: the evaluations, those of a suite beside each other.
        trends: their rows of `trends`, as far as they have one.
        remarks: whether what to look at has a column.
    """
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in COLUMNS[: None if remarks else -1]:
        is_text = name in ("", "look at")
        # Names are wrapped where nothing else helps, and figures never.
        table.add_column(name, no_wrap=not is_text, overflow="fold", justify="left" if is_text else "right")
    for suite, its in _by_suite(headlines).items():
        table.add_row(f"[bold]{suite}[/]")
        for found in its:
            row, correct = trends.get(found.partition, {}), found.overall["correct"]
            table.add_row(
                f"  {found.partition.model_version}",
                _accuracy(correct),
                shown.count(correct["n"]),
                _change(row),
                _right_answer(found.cost),
                *[", ".join(_look_at(found, row))] * remarks,
            )
    return table


def _by_suite(headlines: "Sequence[Headline]") -> "dict[str, list[Headline]]":
    """Returns the evaluations of each suite: a run goes through the suites once for each model version."""
    found: dict[str, list[Headline]] = {}
    for one in headlines:
        found.setdefault(one.partition.suite, []).append(one)
    return found


def _accuracy(correct: Row) -> str:
    value, low, high = (correct[name] for name in ("mean", "low", "high"))
    rests_on = shown.interval_or_counts(value, correct["n"], low, high)
    return shown.rate(value, low, high) + (f" [{rests_on}]" if rests_on else "")


def _change(row: Row) -> str:
    value, low, high = (row.get(f"previous_{name}") for name in ("difference", "low", "high"))
    told = shown.points(value, low, high)
    return told if value is None else f"{told} {row['previous_date']:%m-%d}"


def _right_answer(cost: Row) -> str:
    """Returns what a correct turn cost: dollars if they are known, else tokens."""
    usd, tokens = (cost.get(f"{unit}_per_correct_turn") for unit in ("usd", "tokens"))
    ends = (cost.get(f"usd_per_correct_turn_{end}") for end in ("low", "high"))
    return shown.dollars(usd, *ends) if usd is not None or tokens is None else f"{shown.tokens(tokens)} tokens"


def _look_at(found: "Headline", row: Row) -> Iterator[str]:
    """Yields what a reader should know before the accuracy is believed, the most alarming first."""
    reached, correct = found.coverage, found.overall["correct"]
    if (verdict := row.get("verdict")) in _LOST:
        yield _LOST[verdict]
    elif row.get("open_loss_date"):
        yield f"loss since {row['open_loss_date']:%m-%d}"
    if missing := (reached.planned or 0) - (reached.answered or 0):
        yield f"{missing:,} unanswered"
    if unread := (reached.answered or 0) - (reached.readable or 0):
        yield f"{unread:,} unreadable"
    if found.cases.left_out:
        yield "cases left out"
    if found.ceiling["ceiling"] is not None:
        yield f"ceiling {shown.number(found.ceiling['ceiling'])} {found.ceiling['axis'].replace('_', ' ')}"
    if correct["mean"] is None:
        yield str(correct["reason"])
    if found.scope != "full":
        yield "drawn" if found.drawn else "part"
    if found.simulated:
        yield _STAND_IN


def coverage_lines(headlines: "Sequence[Headline]", suite: str = "") -> Iterator[str]:
    """Yields lines on what is missing: cases that were left out, and how far turns got where not all are scored.

    Model versions that lack the same cases share a line.

    Args:
        headlines: the evaluations of one suite.
        suite: what names the suite in each line, if there are others.
    """
    for sentence in sentences([(found.partition.model_version, found.cases) for found in headlines]):
        yield f"cases:    {suite}{sentence}"
    for found in headlines:
        reached = found.coverage
        lacks = "" if reached.is_whole else reached.gaps(found.cases.unscored) or reached.text()
        for number, told in enumerate(filter(None, (lacks, *found.cases.gold_texts()))):
            yield f"{' ' * 9 if number else 'coverage:'} {suite}{found.partition.model_version}: {told}"
        for metric, row in found.traffic.items():
            what = "the log's own verdict" if metric != "correct" else "accuracy"
            told = shown.estimate(row["mean"], row["low"], row["high"])
            why = f"; {row['reason']}" if row["reason"] else ""
            yield f"traffic:  {suite}{found.partition.model_version}: {what} {told}, from {shown.turns(row['n'])}{why}"


def show(
    workspace: "Workspace", headlines: "Sequence[Headline]", problems: "Sequence[str]", *, paths: bool = False
) -> None:
    """Prints the headline figures, what is missing, where to look, and what went wrong.

    Args:
        workspace: the workspace.
        headlines: the evaluations that have figures.
        problems: a sentence each.
        paths: whether to name the files of store and reports, too.
    """
    from eval_pipeline.cli.terminal import console, fail, note
    from eval_pipeline.reports.contents.gold import overridden_text

    if headlines:
        for part in run_shown(headlines, _trends(workspace, headlines), console.width):
            console.print(part, highlight=False, soft_wrap=isinstance(part, str))
    suites = _by_suite(headlines)
    for name, its in suites.items():
        _show_details(its, f"{name}: " if len(suites) > 1 else "")
    for line in (*_where(workspace.home, headlines), *(_files(workspace, headlines) if paths else ())):
        say(line)
    for found in headlines:
        if overridden := overridden_text(found.editions):
            note(f"{found.partition.suite}, {found.partition.model_version}: {overridden}.")
    if any(found.simulated for found in headlines):
        note("simulated: a stand-in, not a model; its figures say nothing about any real one.")
    for problem in problems:
        fail(problem)


def _trends(workspace: "Workspace", headlines: "Sequence[Headline]") -> "dict[Partition, Row]":
    """Returns the rows of `trends` of evaluations, as far as they are compared."""
    from eval_pipeline.store.record import RecordKey
    from eval_pipeline.store.tables import TRENDS

    found: dict[Partition, Row] = {}
    places = {(one.partition.suite, one.partition.model_version, one.partition.eval_date): one for one in headlines}
    for suite in dict.fromkeys(one.partition.suite for one in headlines):
        key = RecordKey.of_suite(suite)
        for row in workspace.record.read(TRENDS, key).to_pylist() if workspace.record.header(TRENDS, key) else ():
            if one := places.get((suite, row["model_version"], row["eval_date"])):
                found[one.partition] = row
    return found


def _show_details(headlines: "Sequence[Headline]", suite: str) -> None:
    """Prints what is missing of the evaluations of a suite, how they were drawn, and which models answered."""
    from eval_pipeline.cli.terminal import console
    from eval_pipeline.reports.contents.draws import drawn_text

    for line in coverage_lines(headlines, suite):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for found in headlines:
        if text := drawn_text(found.drawn):
            say(f"drawn:    {suite}{found.partition.model_version}: {text}")
    for found in headlines:
        if found.served.models:
            answered = ", ".join((*found.served.models, *found.served.fingerprints))
            say(f"answered: {suite}{found.partition.model_version}: by {answered}")


def _where(home: "Home", headlines: "Sequence[Headline]") -> Iterator[str]:
    from eval_pipeline.reports.places.links import page_text, suite_path

    if headlines:
        there = page_text(suite_path(headlines[0].partition.suite))
        yield f"look:     {there}; --paths names the files"


def _files(workspace: "Workspace", headlines: "Sequence[Headline]") -> Iterator[str]:
    from eval_pipeline.reports.places.paths import WORKBOOK
    from eval_pipeline.stages.reporting import comparison_page_path, page_path

    if headlines:
        yield f"store:    {_store(workspace.home)}"
    pages: list[Path | None] = [page_path(workspace.home, found.partition) for found in headlines]
    pages += [comparison_page_path(workspace, suite) for suite in dict.fromkeys(h.partition.suite for h in headlines)]
    yield from (f"report:   {page} (workbook: {WORKBOOK})" for page in pages if page is not None)


def _store(home: "Home") -> str:
    """Names the store; of a home in a bucket, the file on this disk is a copy that only our commands update."""
    from eval_pipeline.workspace.homes.places import place_of

    if not place_of(home).is_shared:
        return str(home.store)
    return f'{home.place} (read it with eval-pipeline query "SELECT …", or eval-pipeline view)'


Held = Mapping[Partition, object]
"""What tells whether an evaluation changes: its id, and the hash of its scored turns; None if it is not scored."""


def held_now(workspace: "Workspace", partitions: Sequence[Partition]) -> Held:
    """Returns what the record holds of evaluations."""
    from eval_pipeline.store.record import RecordKey
    from eval_pipeline.store.tables import TURN_RESULTS
    from eval_pipeline.workspace.evaluations import id_in_place

    scored = {place: workspace.record.header(TURN_RESULTS, RecordKey.of(place)) for place in partitions}
    return {
        place: (id_in_place(workspace, place), found.content_hash) if found else None for place, found in scored.items()
    }


def beside_lines(workspace: "Workspace", partitions: Sequence[Partition], held: Held) -> Iterator[str]:
    """Yields a line for each evaluation that was held otherwise and has one before it."""
    now = held_now(workspace, partitions)
    for place in (found for found in partitions if now[found] != held[found]):
        from eval_pipeline.analysis.comparisons.chosen.standing import beside_text

        if text := beside_text(workspace, place):
            yield f"before:   {place.suite}, {place.model_version}: {text}"


def baseline_verdicts(workspace: "Workspace", partitions: Sequence[Partition], baseline: str) -> "list[GateVerdict]":
    """Returns a verdict for each evaluation that is not of the baseline itself: whether it is worse."""
    from eval_pipeline.analysis.baseline import baseline_verdict, is_drawn
    from eval_pipeline.operations.ci.gates import GateVerdict

    against = [place for place in partitions if place.model_version != baseline or is_drawn(workspace, place)]
    name = f"not worse than {baseline}"
    failures = ((place, baseline_verdict(workspace, place, baseline)) for place in against)
    return [GateVerdict(place.suite, place.model_version, name, failure) for place, failure in failures]
