"""The command `compare`: compares evaluations on the turns that both answered."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.options import FAILED, OK, Junit, Suites, open_workspace, suite_names
from eval_pipeline.cli.saying import say
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.days import today

if TYPE_CHECKING:
    from eval_pipeline.analysis.comparisons.chosen.matrix import Matrix
    from eval_pipeline.analysis.comparisons.chosen.shown import Sides
    from eval_pipeline.operations.ci.gates import GateVerdict
    from eval_pipeline.workspace.workspace import Workspace

FORMATS = ("text", "markdown", "table", "csv", "json")
Row = Mapping[str, Any]


def compare(
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A B…",
            help="Evaluations: a model version (its latest one), NAME@DATE, NAME@before (the one before the latest), "
            "the id of an evaluation, or a baseline file (.json).",
        ),
    ] = None,
    suite: Suites = None,
    format: Annotated[str, typer.Option(help="text, markdown, table, csv or json.")] = "text",
    baseline: Annotated[
        str | None, typer.Option(metavar="REFERENCE", help="What the others are compared with, such as main.json.")
    ] = None,
    matrix: Annotated[
        bool,
        typer.Option("--matrix", help="Prompts and model versions at a glance; without A B… all that are in use."),
    ] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write A as a baseline file (.json), which CI can keep.")
    ] = None,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Gate: exit with 1 if a later one is significantly worse.")
    ] = False,
    junit: Junit = None,
) -> None:
    """Compares evaluations turn by turn: is the difference more than chance?

    Of each pair, the one named first is the baseline. Evaluations that were scored by different code are not compared;
    the output then says how to score them again, and the exit code is 1.
    """
    from eval_pipeline.analysis.comparisons.chosen.shown import in_use, referenced, save_baseline
    from eval_pipeline.operations.ci.junit import check_place

    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'; one of: {', '.join(FORMATS)}")
    if junit:
        check_place(junit)
    workspace = open_workspace()
    names = references or (in_use(workspace) if matrix else [])
    compared = [*([baseline] if baseline else ()), *names]
    if len(set(compared)) < 2 and not (save and names):
        raise UsageError("name two or more different model versions or evaluations to compare")
    suites = suite_names(workspace, suite)
    saved, sides = referenced(workspace, suites, names), referenced(workspace, suites, compared)
    code = OK if len(compared) == 1 else _compare(workspace, sides, compared, (format, matrix), fail_if_worse, junit)
    if save and code == OK:  # what failed a gate must not become what the next change is measured by
        save_baseline(workspace, saved, save)
        say(f"saved:    {save}", err=True)
    raise typer.Exit(code)


def _compare(
    workspace: "Workspace",
    sides: "Sides",
    asked: Sequence[str],
    shown: tuple[str, bool],
    fail_if_worse: bool,
    junit: Path | None,
) -> int:
    """Prints the comparisons, and returns the exit code; `shown` is the format, and whether as a matrix."""
    from eval_pipeline.analysis.comparisons.chosen.shown import comparisons_of, matrices_of
    from eval_pipeline.operations.ci.junit import write_junit
    from eval_pipeline.operations.ci.matrix import matrix_markdown
    from eval_pipeline.operations.ci.summaries import add_to_summary, comparisons_markdown

    form, with_matrix = shown
    found = comparisons_of(workspace, sides, asked)
    matrices = matrices_of(workspace, sides, found) if with_matrix else {}
    verdicts = [_verdict(name, row, fail_if_worse) for name, rows in found.items() for row in rows]
    if with_matrix:
        markdown = [line for name, matrix in matrices.items() for line in matrix_markdown(name, matrix)]
    else:
        markdown = list(comparisons_markdown(workspace.record, found, today()))
    if form == "markdown":
        say("\n".join(markdown))
    elif form != "text":
        _print_rows(found, form)
    elif with_matrix:
        _print_matrices(matrices)
    else:
        _print_text(workspace, sides, found)
    add_to_summary(markdown)
    if junit:
        write_junit(junit, verdicts)
    return _told(verdicts)


def _print_text(workspace: "Workspace", sides: "Sides", found: Mapping[str, Sequence[Row]]) -> None:
    from eval_pipeline.analysis.comparisons.chosen.shown import metrics_of
    from eval_pipeline.cli.looking.comparison_text import (
        comparison_lines,
        contract_lines,
        conversation_lines,
        metric_lines,
    )

    record = workspace.record
    for name, rows in found.items():
        for row in rows:
            further = (*conversation_lines(record, name, row), *contract_lines(record, name, row))
            for line in (*comparison_lines(record, name, row), *further):
                say(line)
    for name, rows in metrics_of(workspace, {name: sides[name] for name in found}).items():
        for line in metric_lines(name, rows):
            say(line)


def _print_matrices(matrices: "Mapping[str, Matrix]") -> None:
    from eval_pipeline.cli.looking.comparison_text import matrix_lines, matrix_table
    from eval_pipeline.cli.terminal import console

    for name, matrix in matrices.items():
        console.print(matrix_table(name, matrix))
        for line in matrix_lines(matrix):
            say(line)


def _print_rows(found: Mapping[str, Sequence[Row]], form: str) -> None:
    from eval_pipeline.cli.terminal import print_rows

    told = [{"suite": name, **row} for name, rows in found.items() for row in rows]
    if form == "json":
        turns = ("broken_turns", "fixed_turns")  # these columns hold JSON, which must not be embedded as text
        told = [row | {column: json.loads(row[column]) for column in turns} for row in told]
    print_rows(list(told[0]), [list(row.values()) for row in told], form)


def _told(verdicts: "Sequence[GateVerdict]") -> int:
    """Reports failed gates and returns the exit code; refused comparisons are reported with the other results."""
    from eval_pipeline.cli.terminal import fail

    for verdict in verdicts:
        if verdict.failure and not verdict.broke:
            fail(verdict.failure)
    return FAILED if any(verdict.failure for verdict in verdicts) else OK


def _verdict(suite: str, row: Row, fail_if_worse: bool) -> "GateVerdict":
    """Returns the CI verdict: failed if no comparison was possible, or (as a gate) if the later version is worse.

    Like the gate of `run --baseline`, it uses the conservative figure, which counts unanswered turns as wrong.
    """
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.operations.ci.gates import GateVerdict
    from eval_pipeline.reports.comparison.words import pair_names

    a, b = pair_names(row)
    pair = f"{a} → {b}"
    if is_refused(row["reason"]):
        return GateVerdict(suite, pair, "comparison", row["reason"], broke=True)
    worse = fail_if_worse and row["conservative_verdict"] == "a_better"
    untested = fail_if_worse and row["conservative_verdict"] is None
    failure = f"{suite}: {b} is significantly worse than {a}" if worse else None
    if untested:
        failure = f"{suite}: {b} cannot be tested against {a}: {row['reason']}"
    return GateVerdict(suite, pair, f"{b} is not worse than {a}" if fail_if_worse else "comparison", failure)
