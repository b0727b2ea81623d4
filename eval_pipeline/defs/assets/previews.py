"""Previews in materialisations: tables as Markdown with bars, and the report's charts."""

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.core import shown
from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.places.paths import CHARTS
from eval_pipeline.reports.profile import SHARED_UNITS
from eval_pipeline.store import tables
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs

MOST_ROWS = 20
LONGEST_CELL = 80
BAR_WIDTH = 12
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MEANING = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&:@])")
MOST_CHART_BYTES = 200_000
"""Size limit for the charts in one materialisation, since Dagster stores them in its database."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The part of a table that is shown.

    Attributes:
        columns: in this order.
        only: a column and values; only rows with one of these values are shown.
        bar: a column with shares of 0..1 that are also shown as bars.
    """

    columns: Sequence[str]
    only: tuple[str, frozenset[str]] | None = None
    bar: str | None = None


PREVIEWS: Mapping[str, Preview] = {
    "statistics": Preview("metric n mean low high method".split(), ("split", frozenset({"all"})), "mean"),
    "accuracy_by_complexity": Preview("axis level n accuracy low high".split(), bar="accuracy"),
    "cost_per_correct_answer": Preview(
        "turns correct_turns conversations successful_conversations tokens_total usd_total "
        "tokens_per_success usd_per_success reason usd_reason".split()
    ),
    "gold_editions": Preview(
        "edition name n mean low high overridden_turns excluded_turns".split(),
        ("metric", frozenset({"correct"})),
        "mean",
    ),
    "complexity_ceiling": Preview("axis threshold ceiling ceiling_low ceiling_high verdict".split()),
    "error_analysis": Preview(
        "grouping value turns share".split(), ("grouping", frozenset({"error_class", "failure_mode"})), "share"
    ),
    "calibration": Preview("level nominal n accuracy low high verdict".split(), bar="accuracy"),
    "judge_agreement": Preview(
        "n agreement true_positive_rate true_negative_rate base_rate kappa kappa_low kappa_high judge_calls judge_usd "
        "calls_saved".split()
    ),
    "label_confusion": Preview("expected_label answer_label turns share".split(), bar="share"),
    "label_scores": Preview("label n given precision recall f1 low high".split(), bar="f1"),
    "accuracy_by_contract": Preview("contract turns correct accuracy low high".split(), bar="accuracy"),
    "model_comparisons": Preview(
        "model_a model_b n accuracy_a accuracy_b difference low_corrected high_corrected p_corrected verdict".split()
    ),
    "trends": Preview(
        "model_version eval_date n accuracy previous_difference previous_verdict first_verdict".split(),
        bar="accuracy",
    ),
}
"""Table name → preview; columns that a table does not have are skipped."""

COUNTED: Mapping[str, tuple[Table, tuple[str, ...]]] = {
    "generations": (tables.GENERATIONS, ("outcome", "error_class")),
    "recovery_attempts": (tables.RECOVERY_ATTEMPTS, ("number", "outcome", "error_class")),
    "evidence": (tables.EVIDENCE, ("kind", "verdict")),
    "judgements": (tables.JUDGEMENTS, ("choice", "error")),
    "turn_metrics": (tables.TURN_RESULTS, ("correct", "error_class")),
}
"""Assets with many rows: the table shows how often each combination of these columns occurs."""

_ENDS = frozenset({"mean", "low", "high"})
_INTERVALS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("mean", "accuracy", "accuracy_a", "accuracy_b", "difference", "f1", "low", "high"), ("low", "high")
    ),
    **dict.fromkeys(("low_corrected", "high_corrected"), ("low_corrected", "high_corrected")),
    **dict.fromkeys(("kappa", "kappa_low", "kappa_high"), ("kappa_low", "kappa_high")),
    **{of: (f"{of}_low", f"{of}_high") for of in ("tokens_per_success", "usd_per_success")},
    "previous_difference": ("previous_low", "previous_high"),
}
"""Column → the columns with the ends of its interval; others have none."""
_UNITS: Mapping[str, Unit] = {
    **dict.fromkeys(("accuracy", "accuracy_a", "accuracy_b", "low", "high", "share", "nominal", "base_rate"), "rate"),
    **dict.fromkeys(("agreement", "true_positive_rate", "true_negative_rate"), "rate"),
    **dict.fromkeys(("difference", "low_corrected", "high_corrected", "previous_difference"), "points"),
    **dict.fromkeys(("tokens_total", "tokens_per_success"), "tokens"),
    **dict.fromkeys(("usd_total", "usd_per_success", "judge_usd"), "usd"),
    **dict.fromkeys(("kappa", "kappa_low", "kappa_high"), "score"),
    "p_corrected": "p",
}
_BY_GOLD = frozenset({"turn_metrics", *PREVIEWS} - {"judge_agreement"})
"""Assets whose figures depend on the edition of the gold."""

SPENT: Mapping[str, Table] = {
    "generations": tables.GENERATIONS,
    "recovery_attempts": tables.RECOVERY_ATTEMPTS,
    "turn_metrics": tables.TURN_RESULTS,
}
"""Assets that show tokens and cost."""


def preview(inputs: Inputs, asset: str, table: Table | None) -> str:
    """Returns a Markdown table of an asset's result; empty if there is nothing to show."""
    if asset in COUNTED:
        counted, columns = COUNTED[asset]
        rows = inputs.read(counted, columns)
        values = (map(_KINDS.get(name, _as_it_is), rows[name].to_pylist()) for name in columns)
        return count_table(columns, zip(*values, strict=True))
    if table is None or asset not in PREVIEWS:
        return ""
    found = PREVIEWS[asset]
    return rows_table(found, inputs.read(table).to_pylist())


def spent(inputs: Inputs, asset: str) -> dict[str, int | float | None]:
    """Returns tokens and cost of the attempts that an asset made or summarises.

    None if a provider does not report them.
    """
    if asset not in SPENT:
        return {}
    found = inputs.read(SPENT[asset], ["input_tokens", "output_tokens", "usd"])
    return {name: pc.sum(found[name]).as_py() for name in found.column_names}


def overridden(inputs: Inputs, asset: str) -> str:
    """Describes the gold behind the figures of an asset if people have overridden some of it; else empty."""
    header = inputs.header(tables.GOLD_OVERRIDES) if asset in _BY_GOLD else None
    if header is None or not header.rows:
        return ""
    edition = inputs.read(tables.SUITE_EDITIONS).to_pylist()[0]
    turns = edition["overridden_turns"]
    return (
        f"{edition['gold_edition']}: the gold of {turns:,} turn{'s' * (turns != 1)} of the suite is overridden; "
        "gold_editions has the figures without"
    )


def count_table(columns: Sequence[str], places: Iterable[tuple[Any, ...]]) -> str:
    """Returns a table of how often each combination occurs, most frequent first, with its share as a bar."""
    counts = Counter(places)
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    rows = [[*map(cell, place), f"{count:,}", bar(count / total)] for place, count in ordered]
    return markdown_table([*columns, "rows", "share"], rows)


def rows_table(found: Preview, rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns a table of the rows and columns of a preview."""
    if found.only is not None:
        column, values = found.only
        rows = [row for row in rows if row[column] in values]
    if not rows:
        return ""
    columns = [name for name in found.columns if name in rows[0]]
    cells = [[_figure(row, name) for name in columns] for row in rows]
    if found.bar is None:
        return markdown_table(columns, cells)
    return markdown_table([*columns, ""], [[*line, bar(row[found.bar])] for line, row in zip(cells, rows, strict=True)])


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table of Markdown cells: the first rows, and the number of further ones."""
    if not rows:
        return ""
    lines = [[_plain(header) for header in headers], ["---"] * len(headers), *rows[:MOST_ROWS]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    left = len(rows) - MOST_ROWS
    return f"{text}\n\nand {left:,} more" if left > 0 else text


def _figure(row: Mapping[str, Any], name: str) -> str:
    """Returns a cell in the unit of its column; in a table of metrics, in that of the row's metric."""
    unit = SHARED_UNITS.get(row["metric"]) if name in _ENDS and "metric" in row else _UNITS.get(name)
    if unit is None or not isinstance(row[name], int | float):
        return cell(row[name])
    return _plain(shown.figure(row[name], unit, *(row.get(end) for end in _INTERVALS.get(name, ()))))


def cell(value: Any) -> str:
    """Returns a value as Markdown with all special characters escaped, whoever wrote it."""
    match value:
        case None:
            return shown.UNKNOWN
        case bool():
            return "yes" if value else "no"
        case int():
            return shown.count(value)
        case float():
            return shown.number(value)
        case date():
            return value.isoformat()
    text = " ".join(str(value).split())
    return _plain(text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…")


def bar(share: float | None) -> str:
    """Returns a share of 0..1 as a text bar; empty for anything else."""
    if share is None or not 0 <= share <= 1:
        return ""
    eighths = round(share * BAR_WIDTH * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def charts(folder: Path) -> str:
    """Returns the SVG charts in a report's folder as Markdown images, up to a total size."""
    pictures, size = [], 0
    for path in sorted((folder / CHARTS).glob("*.svg")):
        picture = path.read_bytes()
        size += len(picture)
        if size > MOST_CHART_BYTES:
            break
        name = path.stem.replace("-", " ")
        pictures.append(f"![{name}](data:image/svg+xml;base64,{base64.b64encode(picture).decode()})")
    return "\n\n".join(pictures)


def _as_it_is(value: Any) -> Any:
    return value


def _kind_of_error(error: str | None) -> str | None:
    """Returns the kind of a judge's error; the rest of the message quotes the answer."""
    return error if error is None else error.partition(" (")[0]


_KINDS: Mapping[str, Callable[[Any], Any]] = {"error": _kind_of_error}
"""Columns that are shown only in part, because Dagster stores what it shows and must not store responses."""


def _plain(text: str) -> str:
    return _MEANING.sub(r"\\\1", text)
