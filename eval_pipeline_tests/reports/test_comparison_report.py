"""The report of a suite's model versions side by side."""

import json
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import date, timedelta
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import chromium
from evaluations import DAY, Made, evaluate, hashes, make_home
from openpyxl.utils.escape import unescape
from outline import Outline

from eval_pipeline.analysis.comparisons.pairs import REFUSED
from eval_pipeline.cli.looking.comparison_text import contract_lines
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.ci.summaries import comparisons_markdown
from eval_pipeline.reports.charts.trend import of_one_scope
from eval_pipeline.reports.comparison import suite
from eval_pipeline.reports.comparison.contracts import order_sentence
from eval_pipeline.reports.comparison.conversation import FIGURES
from eval_pipeline.reports.comparison.differing import differing_query
from eval_pipeline.reports.comparison.page import comparison_charts, write_comparison_files
from eval_pipeline.reports.comparison.suite import (
    Row,
    SuiteComparison,
    cases_query,
    comparison_hashes,
    read_comparison,
)
from eval_pipeline.reports.comparison.words import equals_text, pair_verdict, trend_verdict
from eval_pipeline.reports.html.comparisons import contracts_sheet, costs_sheet, pairs_sheet
from eval_pipeline.reports.queries import recorded_rows
from eval_pipeline.stages.reporting import page_path
from eval_pipeline.store.parquet import writing
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import ACCURACY_BY_CONTRACT, METRICS, MODEL_COMPARISONS, TRENDS, TURN_RESULTS
from eval_pipeline_tests.chains import compared as compare
from eval_pipeline_tests.chains import ran, ran_of_suite

A4_PX = round((210 - 2 * 14) / 25.4 * 96)
"""What a page is wide between its margins."""
NEXT = DAY + timedelta(days=1)
FILES = {
    *(f"{name}.{form}" for name in ("model_comparisons", "trends") for form in ("parquet", "csv")),
    *("report.xlsx", "report.html", "charts", ".made_from"),
}


OVERLOOKS = {"exact": "column_order", "bird": "duplicates, row_order", "defog": "column_order, row_order"}


def under(model: str, *right: int, owed_to: str = "{}") -> list[Row]:
    """Rows of `accuracy_by_contract` with so many right of 10 turns, and what right ones owe to each contract."""
    place = {"model_version": model, "turns": 10, "low": None, "high": None, "owed_to": owed_to}
    return [
        place | {"contract": contract, "overlooks": overlooks, "correct": count, "accuracy": count / 10}
        for (contract, overlooks), count in zip(OVERLOOKS.items(), right, strict=True)
    ]


UNDER = {"alpha": under("alpha", 7, 6, 6), "beta": under("beta", 5, 8, 5, owed_to='{"duplicates": 3}')}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two dates of one model version, and a second model version that is wrong on every turn."""
    home = make_home(tmp_path_factory.mktemp("compared"), files=6)
    evaluate(home, "weak")
    evaluate(home, "null", day=NEXT)
    found = evaluate(home, "weak", day=NEXT)
    for name, rows in {"weak": UNDER["alpha"], "null": UNDER["beta"]}.items():  # as of a track with contracts
        writer = found.workspace.record.writer(ACCURACY_BY_CONTRACT, RecordKey.of(Partition("sample", name, NEXT)), {})
        with writer as table:
            table.write({column.name: [row[column.name] for row in rows] for column in ACCURACY_BY_CONTRACT.columns})
    compare(found.workspace, "sample")
    return found


@pytest.fixture(scope="module")
def folder(made: Made) -> Path:
    return ran_of_suite(made.workspace, "sample", "comparison_report").facts["folder"]


@pytest.fixture(scope="module")
def compared(made: Made) -> SuiteComparison:
    return read_comparison(made.workspace.record, "sample")


def test_the_folder_is_that_of_the_newest_date_and_the_same_comparisons_give_the_same_bytes(
    made: Made, folder: Path, compared: SuiteComparison
) -> None:
    assert folder == made.workspace.home.reports / "compare" / "sample" / NEXT.isoformat()
    assert {path.name for path in folder.iterdir()} == FILES
    assert pq.read_table(folder / "model_comparisons.parquet").num_rows == len(compared.pairs) == 1
    assert pq.read_table(folder / "trends.parquet").num_rows == len(compared.nights) == 3
    assert (folder / "trends.csv").read_text().count("\n") == 4
    assert ran_of_suite(made.workspace, "sample", "comparison_report").reused
    before = hashes(folder)
    shutil.rmtree(folder)
    assert not ran_of_suite(made.workspace, "sample", "comparison_report").reused
    assert hashes(folder) == before
    hashed = comparison_hashes(made.workspace.record, "sample")
    for what, word in {"turn_results": "turn_results of", "accuracy_by_contract": "accuracy_by_contract of"}.items():
        names = [name for name in hashed if what in name]
        assert names == [f"{word} {name}, {NEXT}" for name in ("null", "weak")], "other answers, other report"


def test_what_a_report_is_made_from_is_hashed_with_one_look_at_the_newest_evaluations(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(suite, "newest", lambda record, name: looks.append(name) or [made.partition])
    assert "turn_results of weak, 2026-01-06" in comparison_hashes(made.workspace.record, "sample")
    assert looks == ["sample"]


def test_page_and_workbook_rank_say_how_errors_go_on_and_have_every_differing_turn(
    folder: Path, compared: SuiteComparison
) -> None:
    outline = Outline((folder / "report.html").read_text(encoding="utf-8"))
    text = "".join(outline.text)
    assert [found.model_version for found in compared.standings] == ["weak", "null"]
    assert "SIMULATED" in text
    assert "weak is better" in text
    (pair,) = compared.pairs
    for turn in json.loads(pair["fixed_turns"] if pair["model_b"] == "weak" else pair["broken_turns"]):
        assert turn in text
    assert {"accuracy-of-models", "model-against-model", "trend"} <= {found.get("id") for found in outline.of("figure")}
    assert all(found.get("scope") for found in outline.of("th"))
    figures = {(row["model_version"], row["metric"]): row for row in compared.conversations}
    names = {row["model_version"] for row in compared.nights}
    assert {name for name, _ in figures} == names
    shown = list(openpyxl.load_workbook(folder / "report.xlsx")["Conversations"].iter_rows(min_row=2, values_only=True))
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert len(shown) == len(figures)
    for (name, metric), row in figures.items():
        (found,) = (line for line in shown if line[0] == name and line[2] == FIGURES[metric])
        assert found[3:5] == (row["n"], pytest.approx(row["mean"]))
        assert FIGURES[metric] in text
    book = openpyxl.load_workbook(folder / "report.xlsx")
    sheets = ["Overview", "Charts", "Comparison", "Differing turns", "Contracts", "Conversations", "Evaluation dates"]
    assert book.sheetnames == [*sheets, "Gold", "Queries"]
    assert len(book["Charts"]._charts) == 4, "accuracy, cost, differences, dates"
    turns = {row[3] for row in book["Differing turns"].iter_rows(min_row=2, values_only=True)}
    (pair,) = compared.pairs
    assert turns == {*json.loads(pair["broken_turns"]), *json.loads(pair["fixed_turns"])}


def test_the_page_leads_to_side_by_side(made: Made, compared: SuiteComparison, monkeypatch: pytest.MonkeyPatch) -> None:
    (pair,) = compared.pairs
    names, days = (",".join(str(pair[f"{what}_{side}"]) for side in "ab") for what in ("model", "eval_date"))
    path = f"/suites/sample/compare?versions={names}&amp;eval_dates={days}"
    folder = ran_of_suite(made.workspace, "sample", "comparison_report").facts["folder"]
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert f"<code>{path}</code> of <code>eval-pipeline view</code>" in text
    monkeypatch.setenv("EVAL_VIEW_URL", "https://evals.example.org")
    assert not ran_of_suite(made.workspace, "sample", "comparison_report").reused, "the address is part of it"
    assert f'<a href="https://evals.example.org{path}">' in (folder / "report.html").read_text(encoding="utf-8")
    monkeypatch.delenv("EVAL_VIEW_URL")
    ran_of_suite(made.workspace, "sample", "comparison_report")


def test_page_and_workbook_say_what_was_asked_answered_and_how_it_failed(
    made: Made, folder: Path, compared: SuiteComparison
) -> None:
    """Against `turn_results` and `finqa_turns` themselves."""
    (pair,) = compared.pairs
    sides = {}
    for side in "ab":
        place = f"suite=sample/model_version={pair[f'model_{side}']}/eval_date={pair[f'eval_date_{side}']}/part.parquet"
        read = [pq.read_table(made.workspace.home.record / table / place) for table in ("turn_results", "finqa_turns")]
        modes = {row["turn_id"]: row["failure_mode"] for row in read[1].to_pylist()}
        sides[side] = {row["turn_id"]: row | {"failure_mode": modes[row["turn_id"]]} for row in read[0].to_pylist()}
    changed = json.loads(pair["broken_turns"]) + json.loads(pair["fixed_turns"])
    book = openpyxl.load_workbook(folder / "report.xlsx")["Differing turns"]
    written = {row[3]: row for row in book.iter_rows(min_row=2, values_only=True)}
    outline = Outline((folder / "report.html").read_text(encoding="utf-8"))
    text = " ".join("".join(outline.text).split())
    assert len(changed) > 5
    for turn in changed:
        a, b = (sides[side][turn] for side in "ab")
        expected = [a["question"], a["expected"]]
        for row in (a, b):
            expected += [row["answer"], row["failure_mode"] or row["error_class"]]
        # A cell holds 32,767 characters at most.
        shown = [cell if cell is None else unescape(cell)[:9000] for cell in written[turn][4:]]
        assert shown == [text and text[:9000] for text in (*expected[:2], *expected[4:], *expected[2:4])]
        assert expected[5] == "no_answer" or expected[3] == "no_answer", "one of them answers nothing"
        for said in expected:
            assert said is None or " ".join(said[:60].split()) in text


def test_reports_of_evaluations_follow_the_comparisons_they_took_part_in(tmp_path: Path) -> None:
    home = make_home(tmp_path, files=3)
    one = evaluate(home, "weak")
    ran(one.workspace, one.partition, "report")
    path = page_path(home, one.partition).with_name("report.xlsx")

    def compared_with() -> list[Any]:
        sheet = openpyxl.load_workbook(path)["Comparison"]
        return [row[1] for row in sheet.iter_rows(values_only=True) if row[0] == "weak"]

    assert compared_with() == []
    other = evaluate(home, "null")
    compare(other.workspace, "sample")
    ran_of_suite(other.workspace, "sample", "comparison_report")
    assert compared_with() == ["null"]
    assert not page_path(home, other.partition).with_name("report.xlsx").exists(), (
        "nobody asked for the report of the other one"
    )
    assert ran(one.workspace, one.partition, "report").reused
    damaged, gone = (one.workspace.record.path(table, RecordKey.of(one.partition)) for table in (METRICS, TURN_RESULTS))
    kept = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    with pytest.raises(EvalError, match=damaged.name):
        ran_of_suite(other.workspace, "sample", "comparison_report")
    damaged.write_bytes(kept)
    gone.unlink()
    ran_of_suite(other.workspace, "sample", "comparison_report")  # the run that makes it anew writes its report


def test_one_model_version_alone_has_nothing_to_compare(tmp_path: Path) -> None:
    one = evaluate(make_home(tmp_path, files=2), "weak")
    assert ran_of_suite(one.workspace, "sample", "comparison_report").facts == {"model_versions": 0}
    assert not (one.workspace.home.reports / "compare").exists(), "a suite without comparisons has no folder"
    compare(one.workspace, "sample")
    result = ran_of_suite(one.workspace, "sample", "comparison_report")
    assert result.rows == 0
    assert "nothing to compare it with" in (result.facts["folder"] / "report.html").read_text()


FILLERS = {"VARCHAR": "x", "BIGINT": 0, "DOUBLE": 0.0, "BOOLEAN": False, "JSON": "[]", "DATE": DAY}


class Reading:
    """Reads for a comparison, changes what is read, and notes of which model versions it has which turns."""

    def __init__(self, compared: SuiteComparison, change: Callable[[str, Row], list[Row]] | None = None) -> None:
        self.compared, self.change = compared, change
        self.held: list[tuple[set[str], set[str]]] = []

    def __call__(
        self, table: Table, sides: Collection[Partition] = (), turns: Collection[str] | None = None
    ) -> pa.Table:
        rows = self.compared.read(table, sides, turns)
        if table.name == TURN_RESULTS.name:
            self.held.append(({*rows["model_version"].to_pylist()}, {*rows["turn_id"].to_pylist()}))
        if self.change is None:
            return rows
        changed = [new for row in rows.to_pylist() for new in self.change(table.name, row)]
        return pa.Table.from_pylist(changed, rows.schema)


def test_a_turn_of_a_further_sample_has_the_answers_of_that_sample(compared: SuiteComparison) -> None:
    """What nobody has on record any more has its id alone, and the page has the first ones."""

    def change(table: str, row: Row) -> list[Row]:
        if table == MODEL_COMPARISONS.name:
            return [row | changed]
        again = row | {"sample": 1} | ({"answer": "again"} if "answer" in row else {})
        return [row, again] if "sample" in row else [row]

    first, second = compared.read(TURN_RESULTS)["turn_id"].unique().to_pylist()[:2]
    changed = {"broken_turns": json.dumps([f"{first}~1", second, "gone"]), "fixed_turns": "[]"}
    found = SuiteComparison("sample", Reading(compared, change))
    (pair,) = found.pairs
    rows = list(found.differing(pair))
    assert [row["turn"] for row in rows] == [f"{first}~1", second, "gone"]
    assert (rows[0]["answer_a"], rows[0]["answer_b"]) == ("again", "again")
    assert "again" not in (rows[1]["answer_a"], rows[1]["answer_b"])
    assert {*rows[2].values()} == {"null", "weak", "broken", "gone", None}
    assert list(found.differing(pair, 2)) == rows[:2]
    assert found.query(differing_query("sample")) == rows, "as the query that is printed returns them"
    assert found.query(differing_query("sample", 2)) == rows[:2]


def test_a_report_holds_only_the_differing_turns_of_a_pair(compared: SuiteComparison, tmp_path: Path) -> None:
    reading = Reading(compared)
    found = SuiteComparison("sample", reading)
    (pair,) = found.pairs
    changed = {change: json.loads(pair[f"{change}_turns"])[::2] for change in ("broken", "fixed")}
    differing = {turn for turns in changed.values() for turn in turns}
    found.__dict__["pairs"] = [pair | {f"{change}_turns": json.dumps(turns) for change, turns in changed.items()}]
    write_comparison_files(found, tmp_path)
    assert {*compared.read(TURN_RESULTS)["turn_id"].to_pylist()} > differing > set()
    assert reading.held == [({"null", "weak"}, differing)] * 2, "for the workbook, and for the page"


def test_of_several_pairs_the_two_of_each_are_read_alone_and_together_they_are_what_is_printed(tmp_path: Path) -> None:
    record, names, turns = Record(tmp_path), ["a", "b", "c"], [f"s/case#{number}" for number in range(4)]

    def write(table: Table, key: RecordKey, rows: list[Row]) -> None:
        kinds = {column.name: column.type for column in table.columns}
        with record.writer(table, key, {}) as writer:
            writer.write({name: [row.get(name, FILLERS.get(kind)) for row in rows] for name, kind in kinds.items()})

    of_pairs = [
        {"model_a": a, "model_b": b, "eval_date_a": DAY, "eval_date_b": DAY, "broken_turns": json.dumps(broken)}
        for (a, b), broken in zip(combinations(names, 2), (turns[1:3], turns[:1], []), strict=True)
    ]
    write(MODEL_COMPARISONS, RecordKey.of_suite("s"), of_pairs[::-1])
    write(TRENDS, RecordKey.of_suite("s"), [{"model_version": name, "eval_date": DAY} for name in names])
    for name in names:
        rows = [{"turn_id": turn, "answer": f"{turn} by {name}"} for turn in turns]
        write(TURN_RESULTS, RecordKey.of(Partition("s", name, DAY)), rows)
    reading = Reading(read_comparison(record, "s"))
    found = SuiteComparison("s", reading)
    told = [list(found.differing(pair)) for pair in found.pairs]
    assert reading.held == [({"a", "b"}, {*turns[1:3]}), ({"a", "c"}, {*turns[:1]})]
    assert [len(rows) for rows in told] == [2, 1, 0]
    assert [*chain.from_iterable(told)] == found.query(differing_query("s"))


def test_of_some_turns_only_the_parts_of_a_file_are_read_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_LEAST_ROW_GROUP_BYTES", 1)
    record, key, turns = Record(tmp_path), RecordKey.of(Partition("s", "a", DAY)), [f"s/case#{n}" for n in range(5)]
    with record.writer(TURN_RESULTS, key, {}) as writer:
        for turn in turns:
            writer.write({c.name: [turn if c.name == "turn_id" else FILLERS[c.type]] for c in TURN_RESULTS.columns})
    read: list[Any] = []
    found = record.row_groups
    monkeypatch.setattr(record, "row_groups", lambda *of: read.append(of[2:]) or found(*of))
    for wanted, parts in [(turns[1:4:2], [1, 3]), (turns, None), (["gone"], [0]), ([], [0])]:
        rows = recorded_rows(record, TURN_RESULTS, [key], ["answer", "turn_id"], wanted)
        assert rows["turn_id"].to_pylist() == [turn for turn in turns if turn in wanted]
        assert read[-1] == (["answer", "turn_id"], parts)


def test_an_evaluation_has_the_pairs_of_its_own_date_and_an_earlier_one_of_it_has_none(made: Made) -> None:
    """Its report would not be made again when they change."""
    places = [replace(made.partition, eval_date=day, evaluation=of) for day, of in [(DAY, ""), (NEXT, ""), (NEXT, "1")]]
    evaluations = [replace(made, partition=place).evaluation for place in places]
    assert [len(found.comparisons) for found in evaluations] == [0, 1, 0]
    assert [len(found.contracts) for found in evaluations] == [0, 6, 0]
    assert [len(found.beside()["comparisons"]) for found in evaluations[:2]] == [0, 1]


def test_retired_model_versions_are_in_no_table(compared: SuiteComparison) -> None:
    def retired(table: str, row: Row) -> list[Row]:
        return [row | {"retired": row["model_version"] == "null"} if table == TRENDS.name else row]

    found = SuiteComparison("sample", Reading(compared, retired))
    for rows in (found.nights, found.conversations, found.contracts, found.query(cases_query("sample"))):
        assert {row["model_version"] for row in rows} == {"weak"}
    assert set(found.flat(TRENDS)["model_version"].to_pylist()) == {"weak"}


def night(compared: SuiteComparison, **changes: Any) -> Row:
    return compared.nights[0] | changes


def test_prices_of_models_and_of_stand_ins_are_drawn_apart(compared: SuiteComparison) -> None:
    (pair,) = compared.pairs
    names = ("a", "b", "x", "y")
    found = SuiteComparison("sample", compared.read)
    found.__dict__["nights"] = [
        night(compared, model_version=name, simulated=name in "xy", usd_total=1.0, usd_a_turn=0.1) for name in names
    ]
    found.__dict__["pairs"] = [
        pair | {"model_a": a, "model_b": b, "pareto_cost_a": "usd", "pareto_cost_b": "usd", "on_front_a": a == "a"}
        for a, b in (("a", "b"), ("x", "y"))
    ]
    charts = {chart.name: chart for chart in comparison_charts(found)}
    assert [row[0] for row in charts["cost-against-accuracy"].rows] == ["a", "b"]
    assert [row[0] for row in charts["cost-against-accuracy-simulated"].rows] == ["x", "y"]
    assert charts["cost-against-accuracy"].headers[1] == "US dollars per turn"
    assert charts["cost-against-accuracy"].rows[0][3] == "yes"


def test_tables_tell_differences_with_a_sign(compared: SuiteComparison) -> None:
    (pair,) = compared.pairs
    pair = pair | {"difference": -0.5, "tokens_difference": -1234.0, "usd_difference": 0.5}
    assert pairs_sheet([pair], []).rows[0][3] == "−50"
    assert costs_sheet([pair], []).rows[0][2:4] == ["−1,234", "+$0.5000"]


@pytest.mark.parametrize(
    ("scopes", "kept"),
    [(["full", "full"], [0, 1]), (["part", "full", "part"], [1]), (["part", "other", "part"], [0, 2])],
)
def test_those_that_were_asked_the_same_are_of_the_whole_suite_or_as_the_first(
    scopes: list[str], kept: list[int]
) -> None:
    assert of_one_scope([0, 1, 2][: len(scopes)], scopes.__getitem__) == kept


def test_what_was_not_tested_is_neither_alike_nor_in_a_chart(compared: SuiteComparison) -> None:
    found = SuiteComparison("sample", compared.read)
    (pair,) = compared.pairs
    found.__dict__["pairs"] = [pair | {"verdict": None, "reason": "of another part of the suite"}]
    for standing, other in zip(found.standings, ("null", "weak"), strict=True):
        assert (standing.equals, standing.untested) == ((), (other,))
        assert equals_text(standing) == f"none; not compared with {other}"
    assert "model-against-model" not in {chart.name for chart in comparison_charts(found)}
    found.__dict__.pop("standings")
    found.__dict__["nights"] = [
        row | {"scope": '{"cases":["a"]}'} if row["model_version"] == "null" else row for row in found.nights
    ]
    assert [standing.model_version for standing in found.charted] == ["weak"]
    (chart, *_) = comparison_charts(found)
    assert [row[0] for row in chart.rows] == ["weak"], "one that was asked another part of the suite is not drawn"
    assert [standing.untested for standing in compared.standings] == [(), ()]


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [(-0.0267, 0.0035, ["−3", "−2", "−1", "0"]), (-0.3, 0.1, ["−30", "−20", "−10", "0", "+10"])],
)
def test_marks_of_small_differences_are_told_apart(
    compared: SuiteComparison, low: float, high: float, marks: list[str]
) -> None:
    found = SuiteComparison("sample", compared.read)
    (pair,) = compared.pairs
    found.__dict__["pairs"] = [pair | {"difference": (low + high) / 2, "low_corrected": low, "high_corrected": high}]
    (chart,) = (chart for chart in comparison_charts(found) if chart.name == "model-against-model")
    assert set(marks) <= set(re.findall(r'class="tick"[^>]*>([^<]+)<', chart.svg))


@pytest.mark.services("browser")
def test_tables_and_a_headline_with_a_price_fit_on_paper(folder: Path, made: Made) -> None:
    wider = (
        "[...document.querySelectorAll('.scroll')].filter((table) => table.offsetParent)"
        ".map((table) => [table.scrollWidth > table.clientWidth, table.innerText])"
    )
    # Stand-ins have no price: the figure of a real model is put beside the others.
    four = """() => {
      const key = document.querySelector('.key');
      while (key.children.length < 4) key.append(key.children[0].cloneNode(true));
      const [title, figure] = key.children[3].children;
      title.textContent = 'US dollars per successful conversation';
      figure.firstChild.textContent = '$0.063173';
      const cut = [...key.querySelectorAll('dd')].filter((cell) => cell.scrollWidth > cell.clientWidth);
      return [key.children.length, key.scrollWidth > key.clientWidth, cut.map((cell) => cell.innerText)];
    }"""
    pages = [folder / "report.html", ran(made.workspace, made.partition, "report").facts["page"]]
    with chromium() as browser:
        page = browser.new_page(viewport={"width": A4_PX, "height": 1000})
        page.emulate_media(media="print")
        for path in pages:
            page.goto(path.as_uri())
            tables = page.evaluate(wider)
            assert len(tables) >= 3
            assert [text for cut, text in tables if cut] == []
        assert page.evaluate(four) == [4, False, []]


@pytest.mark.parametrize(
    ("verdict", "text"),
    [("a_better", "m is better"), ("b_better", "n is better"), ("not_significant", "not significant")],
)
def test_verdicts_of_pairs_in_words(verdict: str, text: str) -> None:
    assert pair_verdict({"verdict": verdict, "model_a": "m", "model_b": "n", "reason": None, "note": None}) == text
    assert pair_verdict({"verdict": None, "reason": "no common turns", "note": None}) == "not tested: no common turns"


def test_a_page_has_model_versions_in_the_order_of_the_query_beside_it() -> None:
    rows = [row | {"rank": 1} for row in (*UNDER["beta"], *under("alpha", 9, 9, 9))]
    assert [row[0] for row in contracts_sheet("sample", rows).rows] == ["beta", "alpha"]


def test_verdicts_of_nights_in_words() -> None:
    row = {"verdict": "break", "break_reason": "suite, judge", "open_loss_date": None}
    assert "not comparable" in trend_verdict(row)
    assert "suite, judge changed" in trend_verdict(row)
    lost = {"verdict": "loss", "break_reason": None, "open_loss_date": date(2026, 1, 1)}
    assert trend_verdict(lost) == "significantly worse than the date before"
    later = trend_verdict(lost | {"verdict": "no_change"})
    assert "no significant change" in later
    assert "loss of 2026-01-01 is still open" in later


def test_page_workbook_and_command_tell_on_which_contract_the_order_depends(made: Made, folder: Path) -> None:
    order = "the order of weak and null depends on duplicates (weak leads under exact and defog, null under bird)"
    outline = Outline((folder / "report.html").read_text(encoding="utf-8"))
    text = " ".join("".join(outline.text).split())
    assert order in text
    assert "2. 60.0%" in text, "weak under bird"
    shown = openpyxl.load_workbook(folder / "report.xlsx")["Contracts"].iter_rows(min_row=2, values_only=True)
    assert {(row[0], row[1]): (row[3], row[5]) for row in shown} == {
        ("weak", "exact"): (7, 1), ("weak", "bird"): (6, 2), ("weak", "defog"): (6, 1),
        ("null", "exact"): (5, 2), ("null", "bird"): (8, 1), ("null", "defog"): (5, 2),
    }  # fmt: skip
    (pair,) = read_comparison(made.workspace.record, "sample").pairs
    told = [line.split() for line in contract_lines(made.workspace.record, "sample", pair)]
    assert ["bird", "80.0%", "→", "60.0%"] in told, "null is the first of the pair"
    assert told[-1] == order.split()
    markdown = " ".join(comparisons_markdown(made.workspace.record, {"sample": [pair]}, NEXT))
    assert f"{order}." in markdown
    before = {**pair, "eval_date_b": DAY}
    assert list(contract_lines(made.workspace.record, "sample", before)) == [], "of a date without such a table"
    assert list(contract_lines(made.workspace.record, "sample", {**pair, "reason": f"{REFUSED}code"})) == []


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        ([], ""),
        ([under("a", 6, 6, 6)], ""),
        ([under("a", 6, 6, 6), under("b", 5, 5, 5)], "a leads under every contract"),
        ([under("a", 6, 6, 6), under("b", 6, 6, 6)], "a and b are level under every contract"),
        ([under("a", 6, 6, 6), under("b", 6, 5, 5)], "a leads under every contract but exact, where b is level"),
        ([under("a", 6, 6, 6), under("b", 6, 5, 6)], "a leads under bird, behind nobody elsewhere"),
        ([under("a", 6, 6, 6), under("b", 6, 6, 6), under("c", 5, 5, 5)], "a and b lead under every contract"),
        (
            [UNDER["alpha"], UNDER["beta"]],
            "the order of alpha and beta depends on duplicates (alpha leads under exact and defog, beta under bird)",
        ),
        # What separates the contracts is also overlooking the order of columns, to which no answer owes anything.
        (
            [under("a", 5, 8, 5, owed_to='{"column_order": 1}'), under("b", 6, 6, 6)],
            "the order of a and b depends on column order (a leads under bird, b under exact and defog)",
        ),
        # No answer is right only by what is overlooked: nothing is made up.
        (
            [under("a", 5, 8, 5), under("b", 6, 6, 6)],
            "the order of a and b depends on the contract (a leads under bird, b under exact and defog)",
        ),
        (
            [under("a", 9, 9, 9), UNDER["alpha"], UNDER["beta"]],
            "a leads under every contract; the order of alpha and beta depends on duplicates (alpha leads under exact "
            "and defog, beta under bird)",
        ),
    ],
)
def test_the_order_under_contracts_in_a_sentence(models: list[list[Row]], sentence: str) -> None:
    assert order_sentence([row for rows in models for row in rows]) == sentence
