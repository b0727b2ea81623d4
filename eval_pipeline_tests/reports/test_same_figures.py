"""A figure reads the same in the terminal, in Markdown, on the page, in the workbook, digest, workbench and Dagster:
40 figures drawn at random, with unknown, 0, n = 1, negative and huge ones among them."""

import csv
import random
import re
import subprocess
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from eval_pipeline.cli.evaluating.outcome import run_table
from eval_pipeline.cli.looking.comparison_text import _test_lines
from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.model import Partition
from eval_pipeline.core.shown import Unit
from eval_pipeline.core.system.days import today
from eval_pipeline.defs.assets.previews import PREVIEWS, rows_table
from eval_pipeline.operations.ci.summaries import _verdict, run_markdown
from eval_pipeline.reports.contents.figure_table import FigureColumn, cell_text
from eval_pipeline.reports.contents.figures import Figure
from eval_pipeline.reports.excel.looks import DOLLARS, CellLook, figure_cell, figure_cells, of_value
from eval_pipeline.reports.excel.page import _styled
from eval_pipeline.reports.html.comparisons import pairs_sheet
from eval_pipeline.reports.html.page import _row
from eval_pipeline.reports.nights.message import accuracy, change, dollars
from eval_pipeline.view.drawing import _environment

DRAWS, MORE = 40, 400
SPECIAL: list[tuple[Unit, float | None, float | None, float | None]] = [
    ("rate", None, None, None), ("rate", 0.0, 0.0, 0.08), ("rate", 1.0, None, None), ("rate", 0.0625, 0.05, 0.075),
    ("usd", None, None, None), ("usd", 0.0, None, None), ("usd", 1e12, None, None), ("usd", 0.00000123, None, None),
    ("tokens", 0, None, None), ("tokens", 987654321012345, None, None), ("points", 0.0, -0.4, 0.4),
    ("points", 0.0512, 0.02, 0.08), ("points", 0.5, 0.1, 0.9), ("points", -0.2469, -0.3, -0.19),
    ("points", -1.0, -1.0, -0.9), ("points", 0.0004, -0.01, 0.01),
]  # fmt: skip


def drawn(number: int) -> list[tuple[Unit, float | None, float | None, float | None]]:
    chance, found = random.Random(46), list(SPECIAL)
    while len(found) < number:
        unit = chance.choice(("rate", "points", "usd", "tokens"))
        value = {
            "rate": chance.random(), "points": chance.uniform(-1, 1), "usd": 10 ** chance.uniform(-6, 6),
            "tokens": round(10 ** chance.uniform(0, 9)),
        }[unit]  # fmt: skip
        half = 10 ** chance.uniform(-3, 0)
        ends = (value - half, value + half) if unit in ("rate", "points") else (None, None)
        found.append((unit, value, *ends))
    return found


def excel(value: Any, form: str) -> str:
    """Shows a number as Excel does: the second section of a format is for negative numbers, without their sign, the
    third for 0, unless a section says of which it is."""
    if value is None:
        return shown.UNKNOWN
    sections = form.split(";")
    if sections[0].startswith("["):
        ours = (
            found
            for found in sections
            if (told := re.match(r"\[([=<])([\d.]+)\]", found)) is None
            or (value == float(told[2]) if told[1] == "=" else value < float(told[2]))
        )
        section = re.sub(r"^\[.*?\]", "", next(ours))
    else:
        section = sections[1] if value < 0 and len(sections) > 1 else sections[-1 if value == 0 else 0]
        section = section if value or len(sections) > 2 else sections[0]
    match = re.fullmatch(r"(.*?)(#,##)?0(?:\.(0+)(#*))?(.*)", section)
    if match is None:
        return section.strip('"')
    before, grouped, decimals, more, after = match.groups()
    exact = Decimal(f"{abs(value):.15g}" if isinstance(value, float) else abs(value)) * (100 if after == "%" else 1)
    told = exact.quantize(Decimal(1).scaleb(-len((decimals or "") + (more or ""))), rounding=ROUND_HALF_UP)
    text = f"{told:{',' if grouped else ''}f}"
    for _ in more or "":
        text = text.removesuffix("0")
    return f"{before}{text}{after}".replace('"', "")


def texts(unit: Unit, value: float | None, low: float | None, high: float | None) -> dict[str, str]:
    """Renders the figure in each place; of tables, what is written there, whitespace folded."""
    figure = Figure("correct", "figure", unit, value, low, high)
    number, look = figure_cells(value, unit, low, high)[0]
    found = {
        "page": " ".join(_row(figure, "")),
        "workbook": excel(number, look.format),
        "workbench": _environment()
        .from_string("{{ figure(value, unit, low, high) }}")
        .render(value=value, unit=unit, low=low, high=high),
    }
    if unit == "points":
        row: dict[str, Any] = {
            "difference": value, "low": low, "high": high, "low_corrected": low, "high_corrected": high, "pairs": 1,
            "p_corrected": 0.01, "p_decisive": 0.01, "p_value": 0.01, "p_exact": 0.01, "method": "mcnemar_exact",
            "verdict": "a_better", "model_a": "a", "model_b": "b", "minimum_detectable_difference": 0.1, "n": 9,
            "correlation": None, "previous_difference": value, "previous_low": low, "previous_high": high, "broken": 1,
            "fixed": 1, "previous_p_corrected": 0.01, "break_reason": None, "previous_date": "2026-01-01",
            "accuracy_a": 0.5, "accuracy_b": 0.5, "tokens_difference": 0, "usd_difference": 0, "simulated": False,
            "latency_ms_difference": 0, "note": None, "reason": None,
        }  # fmt: skip
        return found | {
            "terminal": "\n".join(_test_lines(row)),
            "markdown": _verdict(row, refused=False),
            "page": " ".join(pairs_sheet([row], []).rows[0]),
            "digest": change(row | {"verdict": "loss"}),
            "dagster": rows_table(PREVIEWS["model_comparisons"], [row]),
        }
    cost = dict.fromkeys(
        ("usd_total", "usd_per_success", "tokens_total", "tokens_per_success", "usd_per_correct_turn",
         "tokens_per_correct_turn", "usd_per_success_low", "usd_per_success_high")
    )  # fmt: skip
    cost |= {name: value for name in cost if name.startswith(unit) and not name.endswith(("low", "high"))}
    mean = {"mean": value, "accuracy": value, "low": low, "high": high, "n": 9, "reason": "unknown"}
    one: Any = SimpleNamespace(
        partition=Partition("suite", "model", today()), simulated=False, scope="full", drawn=(), cost=cost, editions=(),
        overall={"correct": mean if unit == "rate" else dict.fromkeys(mean) | {"n": 9, "reason": ""}},
        coverage=Coverage(9, 9, 9, 9, 9), cases=CaseCounts(9, 9), served=SimpleNamespace(models=()),
        ceiling={"ceiling": None, "verdict": "no ceiling observed"},
    )  # fmt: skip
    preview = "accuracy_by_complexity" if unit == "rate" else "cost_per_correct_answer"
    found["terminal"] = " ".join(str(cell) for column in run_table([one], {}).columns for cell in column.cells)
    found["dagster"] = rows_table(PREVIEWS[preview], [mean | cost | {"usd_total": value if unit == "usd" else None}])
    if unit != "tokens":  # messages and Markdown show no tokens of an evaluation
        found["markdown"] = "\n".join(run_markdown([one], []))
        found["digest"] = accuracy(mean) if unit == "rate" else dollars(value)
    return found


@pytest.mark.parametrize("drawn", drawn(DRAWS), ids=str)
def test_a_figure_reads_the_same_in_every_place(drawn: tuple[Unit, float | None, float | None, float | None]) -> None:
    unit, value, low, high = drawn
    expected = shown.figure(value, unit, low, high)
    for place, text in texts(*drawn).items():
        told = re.sub(r"\\(.)", r"\1", text)
        wanted = "unknown" if place == "digest" and (unit, value) == ("usd", None) else expected
        assert re.search(rf"(?<![\d.,]){re.escape(wanted)}(?![\d.,]*\d)", told), (place, wanted, told)


@given(st.floats(-2e6, 2e6) | st.sampled_from([0.0, 0.9999999, 0.00000049, 0.00012, 0.012345, 0.99999, -0.0123, -3.0]))
def test_an_amount_in_a_column_reads_as_elsewhere(value: float) -> None:
    assert excel(value, of_value(CellLook(DOLLARS), value).format) == shown.dollars(value)


@given(st.floats(-2e6, 2e6) | st.sampled_from([0.0, 1.0, 0.875, 1 / 3, -0.0, 1e-12, 0.99999, 12345.678]))
def test_a_number_of_any_unit_reads_as_on_the_page(value: float) -> None:
    row, column = {"x": value}, FigureColumn("x", "x", "plain")
    assert excel(value, _styled(row, column)[1].format) == cell_text(row, column)


def test_a_difference_of_costs_has_its_sign_in_a_cell() -> None:
    for unit, value, told in (("tokens", 120, "+120"), ("usd", -0.0012, "−$0.0012"), ("ms", 35.2, "+35 ms")):
        number, look = figure_cell(value, unit, differs=True)
        assert excel(number, look.format) == told


@pytest.mark.services("libreoffice")
def test_a_spreadsheet_shows_the_digits_of_the_text(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.worksheets[0]
    for place, (unit, value, low, high) in enumerate(drawn(MORE), start=1):
        number, look = figure_cells(value, unit, low, high)[0]
        cell = sheet.cell(place, 1, shown.UNKNOWN if number is None else number)
        cell.number_format = look.format
    book.save(tmp_path / "figures.xlsx")
    as_shown = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true"
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = ["soffice", profile, "--headless", "--convert-to", as_shown, "--outdir", str(tmp_path)]
    subprocess.run([*command, str(tmp_path / "figures.xlsx")], check=True, capture_output=True, timeout=180)
    with (tmp_path / "figures.csv").open(encoding="utf-8", newline="") as file:
        found = [row[0] for row in csv.reader(file)]
    assert found == [shown.figure(value, unit, low, high) for unit, value, low, high in drawn(MORE)]
