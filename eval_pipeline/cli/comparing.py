"""The command `compare`: compares model versions on the turns that both answered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.options import FAILED, OK, Junit, Suites, open_workspace, suite_names
from eval_pipeline.core.days import today
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from eval_pipeline.operations.ci.gates import Verdict
    from eval_pipeline.store.record import Record

FORMATS = ("text", "markdown", "table", "csv", "json")
Row = Mapping[str, Any]
_VERDICTS = {
    "a_better": "{a} is significantly better",
    "b_better": "{b} is significantly better",
    "not_significant": "not significant: these turns do not show that they differ",
}
_METHODS = {"t_clustered": "t clustered by conversation", "mcnemar_exact": "exact McNemar test by conversation"}


def compare(
    models: Annotated[list[str], typer.Argument(metavar="A B…", help="Two or more model versions.")],
    suite: Suites = None,
    format: Annotated[str, typer.Option(help="text, markdown, table, csv or json.")] = "text",
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Gate: exit with 1 if a later one is significantly worse.")
    ] = False,
    junit: Junit = None,
) -> None:
    """Compares the latest evaluations of model versions turn by turn: is the difference more than chance?

    Of each pair, the model version named first is the baseline. Evaluations that were scored by different code are not
    compared; the output then says how to score them again, and the exit code is 1.
    """
    from eval_pipeline.analysis.comparisons.shown import comparisons_of, metrics_of
    from eval_pipeline.operations.ci.junit import check_place, write_junit
    from eval_pipeline.operations.ci.summaries import add_to_summary, comparisons_markdown

    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'; one of: {', '.join(FORMATS)}")
    if len(set(models)) < 2:
        raise UsageError("name two or more different model versions to compare")
    if junit:
        check_place(junit)
    workspace = open_workspace()
    found = comparisons_of(workspace, suite_names(workspace, suite), models)
    verdicts = [_verdict(name, row, fail_if_worse) for name, rows in found.items() for row in rows]
    markdown = list(comparisons_markdown(workspace.record, found, today()))
    if format == "markdown":
        typer.echo("\n".join(markdown))
    else:
        _print(workspace.record, found, format)
    if format == "text":
        for name, rows in metrics_of(workspace, list(found), models).items():
            for line in metric_lines(name, rows):
                typer.echo(line)
    add_to_summary(markdown)
    if junit:
        write_junit(junit, verdicts)
    raise typer.Exit(_told(verdicts))


def _print(record: "Record", found: "Mapping[str, Sequence[Row]]", form: str) -> None:
    from eval_pipeline.cli.terminal import print_rows

    if form == "text":
        for name, rows in found.items():
            for row in rows:
                further = (*conversation_lines(record, name, row), *contract_lines(record, name, row))
                for line in (*comparison_lines(name, row), *further):
                    typer.echo(line)
        return
    told = [{"suite": name, **row} for name, rows in found.items() for row in rows]
    if form == "json":
        turns = ("broken_turns", "fixed_turns")  # these columns hold JSON, which must not be embedded as text
        told = [row | {column: json.loads(row[column]) for column in turns} for row in told]
    print_rows(list(told[0]), [list(row.values()) for row in told], form)


def _told(verdicts: "Sequence[Verdict]") -> int:
    """Reports failed gates and returns the exit code; refused comparisons are reported with the other results."""
    from eval_pipeline.cli.terminal import fail

    for verdict in verdicts:
        if verdict.failure and not verdict.broke:
            fail(verdict.failure)
    return FAILED if any(verdict.failure for verdict in verdicts) else OK


def _verdict(suite: str, row: Row, fail_if_worse: bool) -> "Verdict":
    """Returns the CI verdict: failed if no comparison was possible, or (as a gate) if the later version is worse.

    Like the gate of `run --baseline`, it uses the conservative figure, which counts unanswered turns as wrong.
    """
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.operations.ci.gates import Verdict

    a, b = row["model_a"], row["model_b"]
    pair = f"{a} → {b}"
    if is_refused(row["reason"]):
        return Verdict(suite, pair, "comparison", row["reason"], broke=True)
    worse = fail_if_worse and row["conservative_verdict"] == "a_better"
    untested = fail_if_worse and row["conservative_verdict"] is None
    failure = f"{suite}: {b} is significantly worse than {a}" if worse else None
    if untested:
        failure = f"{suite}: {b} cannot be tested against {a}: {row['reason']}"
    return Verdict(suite, pair, f"{b} is not worse than {a}" if fail_if_worse else "comparison", failure)


def comparison_lines(suite: str, row: Row) -> Iterator[str]:
    """Yields the lines that describe a comparison."""
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.core.coverage import Coverage

    a, b = row["model_a"], row["model_b"]
    stand_in = " (stand-ins among them: no real models)" if row["simulated"] else ""
    yield f"{suite} · {a} ({row['eval_date_a']}) → {b} ({row['eval_date_b']}){stand_in}"
    if is_refused(row["reason"]):
        yield f"  {row['reason']}"
        return
    for side, name, label in (("a", a, "coverage"), ("b", b, "")):
        yield f"  {label:<13} {name}: {Coverage.from_row(row, f'_{side}').text()}"
    where = f"{row['clusters']:,} independent conversations or documents"
    yield f"  common turns  {row['n']:,} that both answered, in {where}"
    if row["difference"] is not None:
        yield f"  accuracy      {row['accuracy_a']:.4f} → {row['accuracy_b']:.4f}"
    yield from _test_lines(row) if row["verdict"] else [f"  no test       {row['reason']}"]
    yield from _conservative_lines(row)
    if row["note"]:
        yield f"  note          {row['note']}"
    yield f"  turn by turn  {_side_by_side(suite, row)}"
    yield from _cost_lines(row)
    for side, name in (("a", a), ("b", b)):
        if row[f"on_front_{side}"] is not None:
            stands = "on" if row[f"on_front_{side}"] else "not on"
            cost = "dollars" if row[f"pareto_cost_{side}"] == "usd" else "tokens"
            yield f"  Pareto front  {name} is {stands} the front of accuracy and {cost} a turn of those compared"
    for column, what in (("broken", f"both answered, only {a} right"), ("fixed", f"both answered, only {b} right")):
        yield f"  {column:<13} {row[column]:,} turns, {what}"
        yield from (f"    {turn}" for turn in json.loads(row[f"{column}_turns"]))


def _side_by_side(suite: str, row: Row) -> str:
    """Returns the workbench address that shows the turns on which the two differ."""
    from eval_pipeline.core.model import Partition
    from eval_pipeline.reports.links import compare_path, linked, view_url

    sides = [Partition(suite, row[f"model_{side}"], row[f"eval_date_{side}"]) for side in ("a", "b")]
    return linked(compare_path(sides)) + ("" if view_url() else "  of `eval-pipeline view`")


def conversation_lines(record: "Record", suite: str, row: Row) -> Iterator[str]:
    """Yields lines on how errors continue through conversations, if the track measures it and both are comparable."""
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.core.model import Partition
    from eval_pipeline.reports.comparison.conversation import FIGURES, conversation_figures

    if is_refused(row["reason"]):
        return
    sides = [
        {
            found["metric"]: found
            for found in conversation_figures(record, Partition(suite, row[f"model_{s}"], row[f"eval_date_{s}"]))
        }
        for s in ("a", "b")
    ]
    told = [metric for metric in FIGURES if all(metric in found for found in sides)]
    if told:
        yield "  over conversations, each on all of its own turns (95% interval)"
    for metric in told:
        a, b = (_figure(found[metric]) for found in sides)
        yield f"    {FIGURES[metric]}: {a} → {b}"


def contract_lines(record: "Record", suite: str, row: Row) -> Iterator[str]:
    """Yields accuracy under each contract and what the order depends on, if the track has contracts."""
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.reports.comparison.contracts import by_model, contract_rows, order_sentence
    from eval_pipeline.reports.comparison.differing import sides_of_pair

    if is_refused(row["reason"]):
        return
    rows = contract_rows(record, sides_of_pair(suite, row))
    found = by_model(rows)
    if len(found) < 2:
        return
    a, b = (found[row[f"model_{side}"]] for side in ("a", "b"))
    yield "  accuracy under each contract, each on all of its own turns"
    for contract in (name for name in a if name in b):
        yield f"    {contract:<13} {a[contract]['accuracy']:.4f} → {b[contract]['accuracy']:.4f}"
    yield f"    {order_sentence(rows)}"


def metric_lines(suite: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yields lines on the paired tests of graded metrics, which stand beside the comparison of right answers."""
    yield f"{suite} · graded metrics, paired by turn, means over turns; corrected for {len(rows)} tests"
    for row in rows:
        what = f"  {row['metric']}: {row['model_a']} → {row['model_b']}"
        if row["verdict"] is None:
            yield f"{what}: no test, {row['reason']}"
            continue
        verdict = _VERDICTS[row["verdict"]].format(a=row["model_a"], b=row["model_b"])
        means = f"{row['mean_a']:.4f} → {row['mean_b']:.4f} over {row['n']:,} turns"
        ends = f"{row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}], p {row['p_corrected']:.2g}"
        yield f"{what}: {means}, {ends}: {verdict}"


def _figure(row: Row) -> str:
    ends = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['mean']:.3f}{ends} of {row['n']:,}"


def _test_lines(row: Row) -> Iterator[str]:
    corrected = ""
    if row["pairs"] > 1:
        ends = f"[{row['low_corrected']:+.4f}, {row['high_corrected']:+.4f}]"
        corrected = f"; corrected for {row['pairs']} pairs: {ends}, p {row['p_corrected']:.2g}"
    ends = f"[{row['low']:+.4f}, {row['high']:+.4f}]"
    yield f"  difference    {row['difference']:+.4f}, 95% interval {ends}{corrected}"
    yield f"  test          {_tests(row, '')}"
    yield "  verdict       " + _VERDICTS[row["verdict"]].format(a=row["model_a"], b=row["model_b"])
    least = row["minimum_detectable_difference"]
    shown = "none: no difference would have been found" if least is None else f"{least:.4f}"
    yield f"  detectable    {shown} (smallest true difference that would be found with a chance of 80%)"
    if row["correlation"] is not None:
        yield f"  correlation   {row['correlation']:.3f} of right and wrong over the turns"


def _tests(row: Row, which: str) -> str:
    """Returns the p-values of a figure; the exact test's is shown next to that of the t test."""
    p, exact = row[f"{which}p_value"], row[f"{which}p_exact"]
    if row[f"{which}method"] == "mcnemar_exact":
        return f"p {p:.2g} ({_METHODS['mcnemar_exact']})"
    return f"p {p:.2g} ({_METHODS['t_clustered']}), {exact:.2g} (exact sign flips by conversation)"


def _conservative_lines(row: Row) -> Iterator[str]:
    """Yields the same comparison with unanswered turns counted as wrong, if there are any."""
    if not (row["unanswered_a"] or row["unanswered_b"]):
        return
    changed = f"{row['conservative_broken']:,} broken, {row['conservative_fixed']:,} fixed"
    yield f"  conservative  {row['conservative_n']:,} turns, those without an answer wrong: {changed}"
    yield f"    accuracy    {row['conservative_accuracy_a']:.4f} → {row['conservative_accuracy_b']:.4f}"
    if row["conservative_verdict"] is None:
        return
    ends = f"[{row['conservative_low']:+.4f}, {row['conservative_high']:+.4f}]"
    yield f"    difference  {row['conservative_difference']:+.4f}, 95% interval {ends}"
    yield f"    test        {_tests(row, 'conservative_')}"
    yield f"    alone       {_VERDICTS[row['conservative_verdict']].format(a=row['model_a'], b=row['model_b'])}"


def _cost_lines(row: Row) -> Iterator[str]:
    for name, label, form in (
        ("tokens", "tokens", ",.0f"),
        ("usd", "dollars", ".5f"),
        ("latency_ms", "milliseconds", ",.0f"),
    ):
        if row[f"{name}_difference"] is None:
            continue
        low, high = row[f"{name}_difference_low"], row[f"{name}_difference_high"]
        ends = f" [{low:+{form}}, {high:+{form}}]" if low is not None else ""
        change = f"{row[f'{name}_difference']:+{form}}{ends}"
        yield f"  {label:<13} {row[f'{name}_a']:{form}} → {row[f'{name}_b']:{form}} a turn: {change}"
