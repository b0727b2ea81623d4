"""What is told of a night: message and page."""

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.nights.message import MOST_LINES, night_message
from eval_pipeline.reports.nights.night import Launched, Night, read_night
from eval_pipeline.reports.nights.page import write_night
from eval_pipeline.reports.places.paths import report_folder
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import ACKNOWLEDGEMENTS, COVERAGE, MODEL_VERSIONS, RUNS, TRENDS
from eval_pipeline_tests.store.samples import key_of, put

DAY = dt.date(2026, 1, 15)
BEFORE = DAY - dt.timedelta(days=1)
EARLIER = DAY - dt.timedelta(days=5)
USUAL: dict[str, Any] = {
    "scope": "full", "simulated": False, "retired": False, "eval_date": DAY, "n": 100, "planned": 100, "asked": 100,
    "answered": 100, "readable": 100, "accuracy": 0.8, "low": 0.7, "high": 0.88, "break_reason": None,
    "verdict": "no_change",
    "previous_date": BEFORE, "previous_difference": 0.01, "previous_low": -0.02, "previous_high": 0.04,
    "previous_p_corrected": 0.4, "open_loss_date": None, "open_loss_against": None, "open_loss_difference": None,
    "open_loss_p_value": None, "reason": None,
}  # fmt: skip
LOST = {
    "verdict": "loss", "accuracy": 0.6, "low": 0.5, "high": 0.7, "previous_difference": -0.2, "previous_low": -0.3,
    "previous_high": -0.1, "previous_p_corrected": 0.0024, "open_loss_date": DAY, "open_loss_against": BEFORE,
    "open_loss_difference": -0.2, "open_loss_p_value": 0.0012,
}  # fmt: skip
STILL = {
    "open_loss_date": EARLIER, "open_loss_against": EARLIER - dt.timedelta(days=1), "open_loss_difference": -0.1,
    "open_loss_p_value": 0.003,
}  # fmt: skip


def trends(record: Record, suite: str, *rows: dict[str, Any]) -> None:
    found = [USUAL | row for row in rows]
    columns = {name: [row[name] for row in found] for name in (*USUAL, "model_version")}
    put(record, TRENDS, RecordKey.of_suite(suite), len(found), **columns)


def ran(record: Record, name: str, suite: str = "finqa", day: dt.date = DAY, **more: Any) -> None:
    told = {"status": "complete", "usd_spent": 1.25, "tokens_spent": 5000, "calls": 100} | more
    put(record, RUNS, key_of(name, day, suite), **{column: [value] for column, value in told.items()})


@pytest.fixture
def night(tmp_path: Path) -> Night:
    record = Record(tmp_path / "record")
    trends(
        record, "finqa", {"model_version": "lost"} | LOST, {"model_version": "same"} | STILL,
        {"model_version": "stand-in", "simulated": True, "verdict": "start", "previous_difference": None},
        {"model_version": "idle", "eval_date": BEFORE} | STILL, {"model_version": "gone", "retired": True} | STILL,
        {"model_version": "later", "eval_date": DAY + dt.timedelta(days=1)} | LOST,
        {"model_version": "short", "answered": 90, "readable": 88, "break_reason": "prompt", "verdict": "break"},
    )  # fmt: skip
    acknowledged = {"model_version": ["idle"], "open_loss_date": [EARLIER]}
    put(record, ACKNOWLEDGEMENTS, RecordKey.of_suite("finqa"), **acknowledged)
    for name in ("lost", "same", "short"):
        ran(record, name)
    put(record, MODEL_VERSIONS, RecordKey.of_model_version("stand-in"), simulated=[True])
    ran(record, "stand-in", usd_spent=None)
    ran(record, "broken", "sql", status="failed", usd_spent=0.5)
    ran(record, "same", "other", BEFORE)
    return read_night(record, DAY, [Launched("broken", "run-1", failed=True), Launched("lost", "run-2")])


def test_the_message_says_what_ran_what_was_lost_and_what_it_cost(night: Night) -> None:
    text = night_message(night, "http://here:3000/")
    assert text.splitlines() == [
        "eval-pipeline: night of 2026-01-15: 5 model versions on 2 suites; 1 new loss, 1 still open; 1 run failed; "
        "1 evaluation not complete; $4.25",
        "• new loss: finqa · lost: −20 points against 2026-01-14, p 0.0024",
        "• loss of 2026-01-10 still open: finqa · same: −10.0 points against 2026-01-09, p 0.0030",
        "• the run of broken failed: http://here:3000/runs/run-1",
        "finqa",
        "  lost: 60% [50% to 70%], −20 points [−30 to −10] against 2026-01-14, p 0.0024: significantly "
        "worse; all 100 turns; $1.25",
        "  same: 80.0% [70.0% to 88.0%], +1.0 points [−2.0 to +4.0] against 2026-01-14, p 0.4000: no significant "
        "change; all 100 turns; $1.25",
        "  short: 80.0% [70.0% to 88.0%], +1.0 points [−2.0 to +4.0] against 2026-01-14, p 0.4000: not comparable with "
        "the date before (prompt changed); planned 100 · asked 100 · answered 90 · readable 88 · scored 100; $1.25",
        "  stand-in (simulated): 80.0% [70.0% to 88.0%], first evaluation; all 100 turns; $0.00",
        "sql",
        "  broken: failed before it could be compared; $0.5000",
        "page: nights/2026-01-15.html in the reports of the home",
        "runs: http://here:3000/runs",
        "losses side by side: `eval-pipeline view`; where EVAL_VIEW_URL has its address, messages have links",
    ]


def test_losses_of_others_stand_on_the_page_only_where_they_are_open(night: Night) -> None:
    assert [(loss.row["model_version"], loss.new, loss.acknowledged) for loss in night.losses] == [
        ("idle", False, True),
        ("lost", True, False),
        ("same", False, False),
    ], "neither a retired model version nor a later night"


def test_what_is_not_known_yet_is_told_as_such(tmp_path: Path) -> None:
    """Neither as a loss, nor as failed, nor as nothing: of a night that was ended by hand and is not compared."""
    record = Record(tmp_path)
    found = {"model_version": "lost", "eval_date": BEFORE} | LOST | {"open_loss_date": BEFORE}
    trends(
        record, "finqa", found, {"model_version": "known"} | LOST, {"model_version": "drifted", "verdict": "drift_down"}
    )
    put(record, ACKNOWLEDGEMENTS, RecordKey.of_suite("finqa"), model_version=["known"], open_loss_date=[DAY])
    newer = {**USUAL, **found, "suite": "finqa", "eval_date": DAY, "verdict": None, "accuracy": 0.0, "compared": False}
    ran(record, "ended", status="canceled", usd_spent=None, tokens_spent=0)
    for name in ("lost", "known", "drifted"):
        ran(record, name, usd_spent=3.32)
    put(
        record,
        COVERAGE,
        key_of("drifted", DAY, "finqa"),
        implausible=['["answers are 100 times the gold"]'],
        left_out=[None],
    )
    launched = [Launched("ended", "run-1", canceled=True)]
    text = night_message(read_night(record, DAY, launched, uncompared=[newer])).splitlines()
    assert text[:-2] == [
        "eval-pipeline: night of 2026-01-15: 4 model versions on 1 suite; 1 new loss (1 acknowledged), 1 still open; "
        "1 evaluation not compared yet; 1 run canceled; 1 evaluation not complete; at least $9.96, "
        "unknown of 1 evaluation",
        "• loss of 2026-01-14 still open: finqa · lost: −20.0 points against 2026-01-14, p 0.0012",
        "• the run of ended was canceled: run run-1",
        "• finqa · drifted: this looks like the configuration, not like the model: answers are 100 times the gold",
        "• finqa · lost: this looks like the configuration, not like the model: none of 100 turns is right",
        "finqa",
        "  drifted: 80.0% [70.0% to 88.0%], +1.0 points [−2.0 to +4.0] against 2026-01-14, p 0.4000: drifted below its "
        "first date; all 100 turns; $3.32",
        "  ended: canceled before it could be compared; dollars unknown",
        "  known: 60% [50% to 70%], −20 points [−30 to −10] against 2026-01-14, p 0.0024: significantly "
        "worse; all 100 turns; $3.32",
        "  lost: 0% [50% to 70%], not compared yet; all 100 turns; $3.32",
    ]
    (ended,) = [one for one in read_night(record, DAY).evaluated if one.model_version == "ended"]
    assert ended.tokens is None, "who answers without telling has not used none"


def test_unknown_dollars_and_names_that_mean_harm_are_told_as_such(tmp_path: Path) -> None:
    record = Record(tmp_path)
    ran(record, "a", usd_spent=None)
    ran(record, "b")
    limit = "$4.9000 of $5; 12 calls not made because of this limit"
    text = night_message(read_night(record, DAY, limit=limit))
    assert text.splitlines()[0].endswith(f"; at least $1.25, unknown of 1 evaluation; limit: {limit}")
    assert "b: not compared; $1.25" in text
    record = Record(tmp_path / "record")
    hostile = "<img src=x onerror=alert(1)>"
    trends(record, "finqa", {"model_version": hostile})
    ran(record, hostile)
    page = write_night(read_night(record, DAY), tmp_path / "reports").read_text()
    assert "<img" not in page
    assert "&lt;img" in page


def test_a_long_night_is_cut(tmp_path: Path) -> None:
    record = Record(tmp_path)
    trends(record, "finqa", *[{"model_version": f"m{place:03}"} for place in range(70)])
    for place in range(70):
        ran(record, f"m{place:03}")
    lines = night_message(read_night(record, DAY)).splitlines()
    assert len(lines) == MOST_LINES + 3
    assert lines[-2] == "… and 11 more lines on the page"


def test_the_page_has_the_figures_and_links_to_the_reports_that_there_are(night: Night, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    folder = report_folder(reports, Partition("finqa", "same", DAY))
    folder.mkdir(parents=True)
    (folder / "report.html").touch()
    place = write_night(night, reports, "http://here:3000")
    assert place == reports / "nights" / "2026-01-15.html"
    page = place.read_text()
    assert re.findall(r'<a href="(\.\./[^"]*)">([^<]*)</a>', page) == [
        ("../finqa/same/2026-01-15/report.html", "finqa · same")
    ]
    assert (place.parent / "../finqa/same/2026-01-15/report.html").is_file()
    assert '<a href="http://here:3000/runs/run-1">run-1</a>' in page
    (drawn,) = re.findall(r'<svg[^>]* role="img" aria-label="([^"]*)"', page)
    assert "lost on 2026-01-15: 60% [50% to 70%] right, −20 points against 2026-01-14, a loss;" in drawn, (
        "without the address of the workbench nothing is a link"
    )
    assert not [name for name in ("idle", "gone") if name in drawn], "not of this night, or of none any more"
    for text in ("loss of 2026-01-10 still open, acknowledged: finqa · idle", "SIMULATED", "finqa · lost", "$1.25"):
        assert text in page
    assert [path.name for path in place.parent.iterdir()] == ["2026-01-15.html"]


def test_losses_lead_to_the_workbench_where_its_address_is_known(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/suites/finqa/compare?versions=lost,lost&amp;eval_dates=2026-01-14,2026-01-15"
    assert path not in write_night(night, tmp_path / "without").read_text()
    monkeypatch.setenv("EVAL_VIEW_URL", "http://bench:8000/")
    assert f'<a href="http://bench:8000{path}">side by side</a>' in write_night(night, tmp_path / "with").read_text()
    lines = night_message(night).splitlines()
    assert "workbench: http://bench:8000/" in lines
    assert not [line for line in lines if ": /" in line], "a path is no link"
