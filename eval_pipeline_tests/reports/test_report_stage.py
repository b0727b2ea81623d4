"""The stage: reuse, equal bytes, evaluations that give little to report, folders that appear whole or not."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluations import DAY, SUITE, Made, evaluate, hashes, make_home

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.reports import registry
from eval_pipeline.reports.charts import canvas
from eval_pipeline.reports.places import again
from eval_pipeline.reports.places.again import copied, told_but_for
from eval_pipeline.reports.places.folder import MADE_FROM, Before, is_current, made_before, make_folder
from eval_pipeline.reports.registry import REPORTS
from eval_pipeline.stages.reporting import page_path
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.runs import record_run
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.support import ROOT

FILES = {
    *(f"{name}.{form}" for name in ("summary", "turns", "validation", "errors") for form in ("parquet", "csv")),
    *("statistics.json", "splits.json", "report.xlsx", "report.html", "charts", "traces", ".made_from"),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path, files=3)


def overview(made: Made) -> str:
    sheet = openpyxl.load_workbook(page_path(made.workspace.home, made.partition).with_name("report.xlsx"))["Overview"]
    return "\n".join(str(cell.value) for row in sheet.iter_rows() for cell in row if cell.value is not None)


def statistics(made: Made) -> dict[str, Any]:
    return json.loads(page_path(made.workspace.home, made.partition).with_name("statistics.json").read_text())


def test_the_folder_holds_every_file_and_is_left_alone_while_current(weak: Made, folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert folder == weak.workspace.home.reports / SUITE / "weak" / "2026-01-05"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = ran(weak.workspace, weak.partition, "report")
    assert result.reused
    assert result.rows == result.facts["turns"] == weak.evaluation.turns
    assert result.facts["workbook"] == folder / "report.xlsx"
    planned = weak.evaluation.planned
    software = json.dumps(dict(planned.software))
    changes = {"scope": "full", "turns_planned": planned.turns, "cases_planned": planned.cases, "software": software}
    record_run(weak.workspace, weak.partition, "run-2", **changes, calls=0, journal_hits=5, call_errors=0)
    assert ran(weak.workspace, weak.partition, "report").reused, "a run that asked for nothing new"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_equal_records_give_equal_bytes_whatever_the_process(weak: Made, folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from datetime import date; from pathlib import Path\n"
        "from eval_pipeline.core.home import Home; from eval_pipeline.core.model import Partition\n"
        "from eval_pipeline.workspace.workspace import Workspace; from eval_pipeline_tests.chains import ran\n"
        "home = Home(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        f"ran(Workspace(home), Partition({SUITE!r}, 'weak', date(2026, 1, 5)), 'report')\n"
    )
    home = Home(tmp_path / "eval", weak.workspace.home.data)
    shutil.copytree(weak.workspace.home.record, home.record)
    environment = os.environ | {"PYTHONHASHSEED": "12345", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", code, str(home.root), str(home.data)], check=True, env=environment, cwd=ROOT)
    other = home.reports / SUITE / "weak" / "2026-01-05"
    assert hashes(other) == hashes(folder)


def lost_meanwhile(folder: Path, name: str, made_of: str) -> Before | None:
    """What was made before, of which somebody has begun to remove the files."""
    found = made_before(folder, name, made_of)
    if found is not None:
        (found.folder / max(found.files)).unlink()
    return found


def test_an_unchanged_night_copies_what_tells_nothing_new(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = evaluate(home, "weak"), evaluate(home, "weak", day=DAY + timedelta(days=1))
    before = hashes(ran(first.workspace, first.partition, "report").facts["folder"])
    with monkeypatch.context() as patch:
        copies = [replace(one, write=lambda *_: pytest.fail("written again")) for one in REPORTS if one.by_date]
        patch.setattr(registry, "REPORTS", [*(one for one in REPORTS if not one.by_date), *copies])
        folder = ran(second.workspace, second.partition, "report").facts["folder"]
    found, described = hashes(folder), (folder / MADE_FROM).read_text()
    shutil.rmtree(home.reports)
    ran(second.workspace, second.partition, "report")
    assert hashes(folder) == found
    assert json.loads((folder / MADE_FROM).read_text()) == json.loads(described)
    assert len(copies) == 4
    assert any(name.endswith(".png") for name in found)
    for module in (again, canvas):
        monkeypatch.setattr(module, "made_before", lost_meanwhile)
    assert hashes(ran(first.workspace, first.partition, "report").facts["folder"]) == before


def test_each_cell_that_a_report_may_show_is_part_of_what_it_tells(weak: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(again, "told_but_for", lambda *given: asked.extend(given) or "")
    monkeypatch.setattr(registry, "write_reports", lambda *given: bool(given[-1]()))
    ran(Workspace(weak.workspace.home), weak.partition, "report")
    day, facts, tables = asked
    told = {told_but_for(day, [*facts, *more], {}) for more in ([], [1], ["1"], [None])}
    told |= {told_but_for(day, facts, {name: table}) for name, table in tables.items()}
    cells = [(name, place) for name, table in tables.items() if len(table) for place in range(table.num_columns)]
    for name, place in cells:
        table, column = tables[name], tables[name].column(place)
        first = pa.nulls(1, column.type) if column[0].is_valid else pa.array([_other(column.type)], column.type)
        cell = pa.chunked_array([first, *column.slice(1).chunks])
        told.add(told_but_for(day, facts, {name: table.set_column(place, table.schema.field(place), cell)}))
    assert len(told - {""}) == len(cells) + len(tables) + 4
    assert {"metrics", "generations", "evidence", "turn_results", "cases", "turns"} <= {name for name, _ in cells}


def _other(kind: pa.DataType) -> Any:
    return "other" if pa.types.is_string(kind) else pa.types.is_boolean(kind) or 1


def test_dates_are_told_by_whether_they_are_the_evaluations_own() -> None:
    days = [DAY + timedelta(days=number) for number in range(3)]

    def told(day: date, *shown: date | str) -> str:
        return told_but_for(day, [*shown], {"t": pa.table({"d": [one for one in shown if isinstance(one, date)]})})

    assert told(days[0], days[0]) == told(days[1], days[1])
    assert told(days[0], days[2]) == told(days[1], days[2]) != told(days[0], days[0])
    assert told(days[0], days[1]) != told(days[2], days[1]), "once later, once earlier"
    assert told(days[0], days[0], days[2], days[0]) != told(days[0], days[2], days[0], days[0])
    assert told(days[0], f"asked on {days[0]}") == ""
    assert told(days[0], f"asked on {days[1]}")
    assert told_but_for(days[0], [], {"t": pa.table({"text": [str(days[0])]})}) == ""


def book(path: Path, day: str) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in (("a.xml", "the same" * 99), ("b.xml", f"of {day}, {day}"), ("c.xml", "")):
            archive.writestr(ZipInfo(name), text)


@pytest.mark.parametrize("harm", ["", "damaged book", "changed page", "drawn date", "broken line", "cut", "cut before"])
def test_copies_have_another_date_unless_it_is_drawn_or_broken(tmp_path: Path, harm: str) -> None:
    broken = {"broken line": "{:.8}</p><p>{}", "cut": "{:.9}…", "cut before": "{:.0}{:.0}…{}"}.get(harm, "in 2026-2027")

    def page(day: str) -> str:
        return f"<p>{day}</p> 2026-01-31 2025-01-05 2025-01-06" + broken.format(day, day[8:], day[3:])

    def build(day: str, found: list[bool], aside: Path) -> None:
        found.append(copied(aside, ["none", "charts", "page.html", "book.xlsx"], "h", date.fromisoformat(day)))
        if not found[-1]:
            for name in ("none", "charts"):
                (aside / name).mkdir(exist_ok=True)
            (aside / "charts" / "one.svg").write_text(day if harm == "drawn date" else "<svg/>")
            (aside / "page.html").write_text(page(day))
            book(aside / "book.xlsx", day)

    found: list[bool] = []
    for number, day in enumerate(("2026-01-05", "2026-01-06", "2026-01-07")):
        make_folder(tmp_path / day, {"turns": day, "report": "c"}, partial(build, day, found))
        written = tmp_path / day / "book.xlsx"
        assert entries(written) == {"none", "charts", "page.html", "book.xlsx", MADE_FROM}
        assert (tmp_path / day / "page.html").read_text() == page(day)
        book(tmp_path / "anew.xlsx", day)
        assert written.read_bytes() == (tmp_path / "anew.xlsx").read_bytes()
        if harm == "damaged book" and number == 1:
            whole = bytearray(written.read_bytes())
            whole[len(whole) // 3] ^= 1
            written.write_bytes(whole)
        if harm == "changed page" and number == 1:
            (tmp_path / day / "page.html").write_text(page(day).replace("<p>", "<b>", 1))
    assert found == [False, harm in ("", "damaged book", "changed page"), not harm]


def test_nothing_right_one_conversation_alone_and_nothing_made_yet(home: Home) -> None:
    with pytest.raises(UsageError, match="sample, weak, 2026-01-05"):
        ran(Workspace(home), Partition(SUITE, "weak", DAY), "report")
    made = evaluate(home, "null")
    assert not ran(made.workspace, made.partition, "report").reused
    found = statistics(made)
    assert (found["accuracy"], found["cost_per_correct_answer"]) == (0.0, None)
    assert "no successful conversation" in overview(made)
    assert found["avg_logic_recall"] is None
    assert found["overall"]["logic_recall"]["reason"]
    made = evaluate(home, "weak", Scope(sample_size=1), day=date(2026, 1, 7))
    ran(made.workspace, made.partition, "report")
    assert "PART OF THE SUITE ONLY: sample size 1" in overview(made)
    assert statistics(made)["scope"] == {"sample_size": 1}
    correct = statistics(made)["overall"]["correct"]
    assert correct["mean"] is not None
    assert correct["low"] is None
    assert "one conversation only" in overview(made)


def test_an_empty_suite(tmp_path: Path) -> None:
    home = make_home(tmp_path, files=0)
    for path in (home.data / "suites" / SUITE / "cases").iterdir():
        path.write_text("")
    made = evaluate(home, "weak", day=date(2026, 1, 6))
    result = ran(made.workspace, made.partition, "report")
    assert result.rows == 0
    folder = result.facts["folder"]
    assert {path.name for path in folder.iterdir()} == FILES
    assert pq.read_table(folder / "summary.parquet").num_rows == 0
    assert list((folder / "traces").iterdir()) == []
    assert "no turns" in overview(made)
    assert statistics(made)["accuracy"] is None


def test_several_samples_and_a_price(home: Home) -> None:
    made = evaluate(home, "priced")
    folder = ran(made.workspace, made.partition, "report").facts["folder"]
    summary = pq.read_table(folder / "summary.parquet").to_pylist()
    assert {row["sample"] for row in summary} == {0, 1}
    assert all(row["usd"] > 0 for row in summary)
    found = statistics(made)
    assert found["usd_per_correct_answer"] > 0
    assert "pass@2" in found["overall"]
    workbook = openpyxl.load_workbook(folder / "report.xlsx")
    assert [cell.value for cell in workbook["Turns"][1]][:3] == ["conversation_id", "turn_idx", "sample"]
    trace = json.loads(next((folder / "traces").iterdir()).read_text())
    assert {turn["sample"] for turn in trace["turns"]} == {0, 1}
    assert all(turn["attempts"] for turn in trace["turns"])


# CI installs it: there its absence is a failure, not a skip.
@pytest.mark.services("libreoffice")
def test_libreoffice_opens_the_workbook_and_prints_it(folder: Path, tmp_path: Path) -> None:
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", str(tmp_path)]
    subprocess.run([*command, str(folder / "report.xlsx")], check=True, capture_output=True, timeout=180)
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


INPUTS = {"turns": "a"}


def fill(folder: Path, text: str = "one") -> None:
    (folder / "file.txt").write_text(text)
    (folder / "traces").mkdir()
    (folder / "traces" / "a.json").write_text(text)


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.parent.iterdir()} - {".lock"}


def test_a_folder_is_left_alone_while_current_and_replaced_for_other_inputs(tmp_path: Path) -> None:
    folder = tmp_path / "suite" / "model" / "2026-01-05"
    assert make_folder(folder, INPUTS, fill)
    for opened in ("~$report.xlsx", ".~lock.report.xlsx#"):
        (folder / opened).write_text("of an editor")
    assert not make_folder(folder, INPUTS, lambda aside: pytest.fail("written again"))
    assert (folder / "traces" / "a.json").read_text() == "one"
    assert make_folder(folder, {"turns": "b"}, lambda aside: (aside / "other.txt").write_text("two") and None)
    assert {path.name for path in folder.iterdir()} == {MADE_FROM, "other.txt"}
    assert entries(folder) == {"2026-01-05"}


def do_harm(folder: Path, harm: str) -> None:
    trace = folder / "traces" / "a.json"
    match harm:
        case "cut":
            os.truncate(trace, 1)
        case "removed":
            trace.unlink()
        case "added":
            (folder / "traces" / "b.json").write_text("")
        case "made_from":
            (folder / MADE_FROM).write_text("{")


@pytest.mark.parametrize("harm", ["cut", "removed", "added", "made_from"])
def test_a_folder_that_is_not_as_written_is_made_again(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)
    do_harm(folder, harm)
    assert not is_current(folder, INPUTS)
    assert make_folder(folder, INPUTS, fill)
    assert is_current(folder, INPUTS)


def part_found(folder: Path, name: str, made_of: str = "h", code: str = "c") -> bool:
    """Whether a part of a folder that is built now is found in an earlier one."""
    found: list[Before | None] = []
    make_folder(folder, {"turns": "b", "report": code}, lambda aside: found.append(made_before(aside, name, made_of)))
    return found != [None]


@pytest.mark.parametrize("name", ["traces", "traces/a.json", "file.txt"])
def test_a_part_is_found_where_the_same_code_made_it_of_the_same(tmp_path: Path, name: str) -> None:
    def build(aside: Path) -> None:
        assert made_before(aside, name, "h") is None
        fill(aside)

    assert made_before(tmp_path, name, "h") is None, "nobody builds a folder"
    make_folder(tmp_path / "1", {"turns": "a", "report": "c"}, build)
    (tmp_path / "lost").mkdir()
    assert not part_found(tmp_path / "2", name, made_of="other")
    shutil.rmtree(tmp_path / "2")
    assert not part_found(tmp_path / "2", name, code="other")
    shutil.rmtree(tmp_path / "2")
    assert not part_found(tmp_path / "2", "file")
    shutil.rmtree(tmp_path / "2")
    assert part_found(tmp_path / "2", name)
    assert not part_found(tmp_path / "3", name), "the last one has no such part"


@pytest.mark.parametrize("harm", ["cut", "removed", "added", "made_from"])
def test_a_part_that_is_not_as_written_is_not_used(tmp_path: Path, harm: str) -> None:
    make_folder(tmp_path / "1", {"report": "c"}, lambda aside: fill(aside) or made_before(aside, "traces", "h"))
    assert part_found(tmp_path / "2", "traces")
    shutil.rmtree(tmp_path / "2")
    do_harm(tmp_path / "1", harm)
    assert not part_found(tmp_path / "2", "traces")


def test_a_failure_or_a_full_disk_leaves_the_old_folder_and_nothing_aside(tmp_path: Path) -> None:
    def full(aside: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="no room on the disk"):
        make_folder(tmp_path / "day", INPUTS, full)
    assert not (tmp_path / "day").exists()
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)

    def fail(aside: Path) -> None:
        fill(aside, "two")
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        make_folder(folder, {"turns": "b"}, fail)
    assert (folder / "file.txt").read_text() == "one"
    assert is_current(folder, INPUTS)
    assert entries(folder) == {"day"}


def test_what_killed_processes_left_is_cleared_away_but_not_what_others_build(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    for name in (".new-day", ".old-day", ".new-other"):
        (tmp_path / name / "traces").mkdir(parents=True)
        (tmp_path / name / "half.txt").write_text("half")
    make_folder(folder, INPUTS, fill)
    assert entries(folder) == {"day", ".new-other"}
    assert not (folder / "half.txt").exists()
    folder.rename(tmp_path / ".old-day")  # killed between the two renames
    assert make_folder(folder, INPUTS, fill)
    assert entries(folder) == {"day", ".new-other"}
