"""What `compare` says of two evaluations in the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from eval_pipeline.analysis.comparisons.chosen.matrix import Matrix, difference_text, legend
from eval_pipeline.core import shown
from eval_pipeline.core.shown import Unit
from eval_pipeline.operations.ci.matrix import MOST_PAIRS, cell_texts
from eval_pipeline.operations.ci.summaries import MOST_EXAMPLES
from eval_pipeline.reports.comparison.differing import examples, sides_of_pair
from eval_pipeline.reports.comparison.words import is_of_file, pair_names

if TYPE_CHECKING:
    from rich.table import Table

    from eval_pipeline.store.record import Record

Row = Mapping[str, Any]
_VERDICTS = {
    "a_better": "{a} is significantly better",
    "b_better": "{b} is significantly better",
    "not_significant": "not significant: these turns do not show that they differ",
}
_METHODS = {"t_clustered": "t clustered by conversation", "mcnemar_exact": "exact McNemar test by conversation"}


def comparison_lines(record: "Record", suite: str, row: Row) -> Iterator[str]:
    """Yields the lines that describe a comparison."""
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.core.covering.coverage import Coverage

    a, b = pair_names(row)
    stand_in = " (stand-ins among them: no real models)" if row["simulated"] else ""
    first, second = (_dated(row, side, name) for side, name in (("a", a), ("b", b)))
    yield f"{suite} · {first} → {second}{stand_in}"
    if row.get("causes"):
        yield f"  made with     {row['causes']}"
    yield from (f"    {line}" for line in (row.get("prompt_difference") or "").splitlines())
    if is_refused(row["reason"]):
        yield f"  {row['reason']}"
        return
    for side, name, label in (("a", a, "coverage"), ("b", b, "")):
        yield f"  {label:<13} {name}: {Coverage.from_row(row, f'_{side}').text()}"
    where = shown.counted(
        row["clusters"], "independent conversation or document", "independent conversations or documents"
    )
    yield f"  common turns  {row['n']:,} that both answered, scored for both, in {where}"
    if row["difference"] is not None:
        before, after = shown.rates(row["accuracy_a"], row["accuracy_b"], row["low"], row["high"])
        yield f"  accuracy      {before} → {after}"
    yield from _test_lines(row) if row["verdict"] else [f"  no test       {row['reason']}"]
    yield from _conservative_lines(row)
    if row["note"]:
        yield f"  note          {row['note']}"
    if not is_of_file(row):
        yield f"  turn by turn  {_side_by_side(suite, row)}"
    yield from _cost_lines(row)
    for side, name in (("a", a), ("b", b)):
        if row[f"on_front_{side}"] is not None:
            stands = "on" if row[f"on_front_{side}"] else "not on"
            cost = "dollars" if row[f"pareto_cost_{side}"] == "usd" else "tokens"
            yield f"  Pareto front  {name} is {stands} the front of accuracy and {cost} a turn of those compared"
    yield from _changed_lines(record, suite, row)


def _dated(row: Row, side: str, name: str) -> str:
    """Returns a name with its date; one that tells two of a model version apart has it already."""
    return name if name != row[f"model_{side}"] else f"{name} ({row[f'eval_date_{side}']})"


def _changed_lines(record: "Record", suite: str, row: Row) -> Iterator[str]:
    """Yields how many turns are broken and fixed, with some of them."""
    told = examples(record, suite, row, MOST_EXAMPLES)
    for (change, turns), name in zip(told.items(), pair_names(row), strict=True):
        yield f"  {change:<13} {shown.turns(row[change])}, both answered, only {name} right"
        yield from (f"    {turn}  {question}".rstrip() for turn, question in turns)
        if row[change] > MOST_EXAMPLES:
            group = {"broken": "rw", "fixed": "wr"}[change]
            where = "--format json has all" if is_of_file(row) else _side_by_side(suite, row, group)
            yield f"    and {row[change] - MOST_EXAMPLES:,} more: {where}"


def _side_by_side(suite: str, row: Row, group: str = "") -> str:
    """Returns the workbench address that shows the turns on which the two differ, or a group of them."""
    from eval_pipeline.reports.places.links import compare_path, page_text

    return page_text(compare_path(sides_of_pair(suite, row), {"group": group}))


def conversation_lines(record: "Record", suite: str, row: Row) -> Iterator[str]:
    """Yields lines on how errors continue through conversations, if the track measures it and both are comparable."""
    from eval_pipeline.analysis.comparisons.pairs import is_refused
    from eval_pipeline.reports.comparison.conversation import FIGURES, conversation_figures

    if is_refused(row["reason"]) or is_of_file(row):
        return
    sides = [
        {found["metric"]: found for found in conversation_figures(record, side)} for side in sides_of_pair(suite, row)
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

    if is_refused(row["reason"]) or is_of_file(row):
        return
    rows = contract_rows(record, sides_of_pair(suite, row))
    found = by_model(rows)
    if len(found) < 2:
        return
    a, b = (found[row[f"model_{side}"]] for side in ("a", "b"))
    yield "  accuracy under each contract, each on all of its own turns"
    for contract in (name for name in a if name in b):
        yield f"    {contract:<13} {_rate(a[contract])} → {_rate(b[contract])}"
    yield f"    {order_sentence(rows)}"


def metric_lines(suite: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yields lines on the paired tests of graded metrics, which stand beside the comparison of right answers."""
    tests = shown.counted(len(rows), "test", "tests")
    yield f"{suite} · graded metrics, paired by turn, means over turns; corrected for {tests}"
    for row in rows:
        a, b = pair_names(row)
        what = f"  {row['metric']}: {a} → {b}"
        if row["verdict"] is None:
            yield f"{what}: no test, {row['reason']}"
            continue
        verdict = _VERDICTS[row["verdict"]].format(a=a, b=b)
        means = f"{shown.score(row['mean_a'])} → {shown.score(row['mean_b'])} over {shown.turns(row['n'])}"
        change = shown.estimate(row["difference"], row["low"], row["high"], "score")
        corrected = f"; corrected p {shown.p_value(row['p_corrected'])}" if len(rows) > 1 else ""
        p = max(row["p_value"], row["p_flips"])
        yield f"{what}: {means}, {change}, p {shown.p_value(p)}{corrected}: {verdict}"


def _rate(row: Row) -> str:
    return shown.rate(row["accuracy"], row["low"], row["high"])


def _figure(row: Row) -> str:
    from eval_pipeline.reports.comparison.conversation import unit_of

    return f"{shown.estimate(row['mean'], row['low'], row['high'], unit_of(row['metric']))} of {row['n']:,}"


def _test_lines(row: Row) -> Iterator[str]:
    corrected = ""
    if row["pairs"] > 1:
        ends = shown.interval(row["low_corrected"], row["high_corrected"], "points")
        corrected = f"; corrected for {row['pairs']} pairs: {ends}, p {shown.p_value(row['p_corrected'])}"
    yield f"  difference    {shown.points_text(row['difference'], row['low'], row['high'])}{corrected}"
    yield f"  test          {_tests(row, '')}"
    a, b = pair_names(row)
    yield "  verdict       " + _VERDICTS[row["verdict"]].format(a=a, b=b)
    least = row["minimum_detectable_difference"]
    found = shown.points(least).removeprefix("+") + " points"
    told = "none: no difference would have been found" if least is None else found
    yield f"  detectable    {told} (smallest true difference that would be found with a chance of 80%)"
    if row["correlation"] is not None:
        yield f"  correlation   {shown.score(row['correlation'])} of right and wrong over the turns"


def _tests(row: Row, which: str) -> str:
    """Returns the p-values of a figure; the exact test's is shown next to that of the t test."""
    p, exact = (shown.p_value(row[f"{which}{name}"]) for name in ("p_value", "p_exact"))
    if row[f"{which}method"] == "mcnemar_exact":
        return f"p {p} ({_METHODS['mcnemar_exact']})"
    return f"p {p} ({_METHODS['t_clustered']}), {exact} (exact sign flips by conversation)"


def _conservative_lines(row: Row) -> Iterator[str]:
    """Yields the same comparison with unanswered turns counted as wrong, if there are any."""
    if not (row["unanswered_a"] or row["unanswered_b"]):
        return
    changed = f"{row['conservative_broken']:,} broken, {row['conservative_fixed']:,} fixed"
    yield f"  conservative  {shown.turns(row['conservative_n'])}, those without an answer wrong: {changed}"
    ends = row["conservative_low"], row["conservative_high"]
    a, b = shown.rates(row["conservative_accuracy_a"], row["conservative_accuracy_b"], *ends)
    yield f"    accuracy    {a} → {b}"
    if row["conservative_verdict"] is None:
        return
    told = shown.points_text(*(row[f"conservative_{name}"] for name in ("difference", "low", "high")))
    yield f"    difference  {told}"
    yield f"    test        {_tests(row, 'conservative_')}"
    a, b = pair_names(row)
    yield f"    alone       {_VERDICTS[row['conservative_verdict']].format(a=a, b=b)}"


def _cost_lines(row: Row) -> Iterator[str]:
    units: Mapping[str, tuple[str, Unit]] = {
        "tokens": ("tokens", "tokens"), "usd": ("dollars", "usd"), "latency_ms": ("latency", "ms"),
    }  # fmt: skip
    for name, (label, unit) in units.items():
        if row[f"{name}_difference"] is None:
            continue
        change, low, high = (shown.signed(row[f"{name}_difference{end}"], unit) for end in ("", "_low", "_high"))
        ends = "" if row[f"{name}_difference_low"] is None else f" [{low} to {high}]"
        a, b = (shown.figure(row[f"{name}_{side}"], unit) for side in ("a", "b"))
        yield f"  {label:<13} {a} → {b} a turn: {change}{ends}"


def matrix_table(suite: str, matrix: Matrix) -> "Table":
    """Returns the matrix of a suite: accuracy, its interval, and the cost of a right turn."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=f"{suite} · 95% intervals", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("model version", overflow="fold", min_width=12)
    for prompt in matrix.prompts:
        table.add_column(escape(prompt) if len(matrix.prompts) > 1 else "", justify="right")
    for model, cells in matrix.rows():
        table.add_row(escape(model), *("\n".join(map(escape, cell_texts(cell))) for cell in cells), end_section=True)
    return table


def matrix_lines(matrix: Matrix) -> Iterator[str]:
    """Yields what the matrix means, and the pairs that differ."""
    yield legend(matrix)
    yield from (f"  {difference_text(row)}" for row in matrix.different[:MOST_PAIRS])
    if len(matrix.different) > MOST_PAIRS:
        yield f"  and {len(matrix.different) - MOST_PAIRS:,} more; --format csv has every pair"
