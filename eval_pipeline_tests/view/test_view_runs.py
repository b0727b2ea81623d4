"""Runs in progress on every page and on a page of their own: what is seen, stopping, and resuming."""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core.shown import UNKNOWN
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.core.system.processes import host, worldwide_mark
from eval_pipeline.operations.upkeep import resuming
from eval_pipeline.view.page import Bench
from eval_pipeline.view.pages.runs import ended_run
from eval_pipeline.workspace.watching.running import seen
from eval_pipeline.workspace.watching.status import Speed, Status
from eval_pipeline.workspace.watching.watch import output_path, write_status
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.view.homes import FALLING, HOSTILE_TEXTS, SUITE
from eval_pipeline_tests.view.pages import PORT, Parts, is_harmless, let_in

OURS = {"Origin": f"http://127.0.0.1:{PORT}"}
REQUEST = {"partitions": [["bench", "m", "2026-01-02"]], "scope": "full", "epoch": "", "limit": None, "until": None}
RUNS = Status(
    id="a-1",
    command="run",
    process=worldwide_mark(),
    began=0.0,
    request=REQUEST,
    place=["bench", "m", "2026-01-02"],
    step="asking",
    total=2000,
    done=500,
    readable=490,
    scored=480,
    right=240,
    low=0.4,
    high=0.6,
    errors=[["timeout", 12, "bench/c1#0: no answer in time"]],
    retried=[["rate_limited", 31, "bench/c2#0: HTTP 429"]],
    calls=520,
    pace=Speed(60.0, 66, 60),
    usd=1.5,
    limit_usd=5.0,
    limit_spent=2.0,
    limit_kind="command",
)


@pytest.fixture
def there(lab: Lab) -> Iterator[TestClient]:
    """The workbench of a home without a store."""
    with Bench.of(lab.home) as bench:
        yield let_in(bench)


def put(lab: Lab, **told: Any) -> None:
    write_status(lab.home, replace(RUNS, at=time.time(), **told))


def test_a_run_is_seen_before_there_is_any_store(lab: Lab, there: TestClient) -> None:
    assert "Nothing runs" in Parts(there.get("/runs").text).text
    put(lab)
    told = Parts(there.get("/runs").text).text
    for text in (
        "bench · m 2026-01-02 running",
        "500 of 2,000 turns , about 25 min left",
        "490 of 500",
        "50% [40% to 60%] of 480 scored",
        "$2.00 of $5.00",
        "66",
        "timeout 12 bench/c1#0: no answer in time",
        "Calls that failed and are made again Error Count For example rate_limited 31 bench/c2#0: HTTP 429",
    ):
        assert text in told
    for address in ("/", "/suites/bench/turns"):
        page = Parts(there.get(address).text)
        assert "bench · m : 500 of 2,000 turns, about 25 min left" in page.text
        assert page.links("/runs#") == ["/runs#a-1"]
    put(lab, state="stopped")
    page = Parts(there.get("/").text)
    assert "bench · m : canceled at 500 of 2,000 turns" in page.text
    assert (page.links("/runs#"), "left" in page.text) == (["/runs#a-1"], False)


@pytest.mark.parametrize(("place", "told"), [([], "run running"), (["bench"], "bench running")])
def test_a_step_of_a_whole_suite_or_of_all_is_shown_without_the_how_many_th(
    lab: Lab, there: TestClient, place: list[str], told: str
) -> None:
    put(lab, place=place, step="trends", evaluations=3)
    page = Parts(there.get("/runs").text).text
    assert told in page
    assert "at trends" in page
    assert "of 3" not in page


def test_what_was_asked_stays_on_the_card_while_later_stages_are_at_work(lab: Lab, there: TestClient) -> None:
    put(lab, step="statistics", first={"total": 2000, "done": 2000, "readable": 1990, "errors": RUNS.errors})
    told = Parts(there.get("/runs").text).text
    for text in ("at statistics", "Asked 2,000 of 2,000 turns", "1,990 of 2,000", "timeout 12", "$2.00 of $5.00"):
        assert text in told


def test_what_stopped_a_run_is_told_to_its_end(lab: Lab, there: TestClient) -> None:
    advice = f"no answer can be read. {'Look at the endpoint. ' * 100}Or with --no-canary"
    put(lab, state="failed", problems=[advice])
    assert "Or with --no-canary" in Parts(there.get("/runs").text).text


STARTED = datetime(2026, 3, 1, 23, 30)
RAN = {
    "suite": "bench", "model_version": "m", "eval_date": date(2026, 3, 1), "evaluation_id": "e", "earlier": False,
    "status": "complete", "started_at": STARTED, "finished_at": STARTED + timedelta(minutes=3), "usd": 1.5, "tokens": 7,
}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({}, ("?model_version=m&eval_date=2026-03-01", "well", 180, "$1.50")),
        ({"earlier": True}, ("&evaluation=e", "well", 180, "$1.50")),
        ({"status": "incomplete", "usd": None}, ("eval_date=2026-03-01", "a budget was reached", 180, "7 tokens")),
        ({"status": "canceled", "usd": None, "tokens": 0}, ("", "canceled", 180, UNKNOWN)),
        ({"status": "failed"}, ("", "failed", 180, "$1.50")),
        ({"status": "failed", "finished_at": None}, ("", "failed (killed)", None, "$1.50")),
    ],
)
def test_how_a_run_ended_is_told_as_it_is_on_record(row: dict[str, Any], told: tuple[Any, ...]) -> None:
    address, *rest = told
    found = ended_run(RAN | row)
    assert [found.how, found.seconds, found.cost] == rest
    assert found.address.endswith(address)
    assert bool(found.address) is bool(address)


def test_the_last_runs_that_ended_lead_to_what_they_made(client: TestClient) -> None:
    page = Parts(client.get("/runs").text)
    assert f"{SUITE} · {FALLING} 2026-03-02 well" in page.text
    assert page.rows()[0].startswith(f"/suites/{SUITE}/turns?")
    assert all(client.get(address).status_code == 200 for address in page.rows())
    is_harmless(client.get("/runs").text)


def test_what_a_model_or_an_endpoint_says_does_nothing_here(lab: Lab, there: TestClient) -> None:
    texts = [text[:2000] for text in HOSTILE_TEXTS]
    told = [[text, 1, text] for text in texts]
    put(lab, errors=told, retried=told, waiting=texts, problems=texts, place=[texts[0], texts[3], ""])
    put(lab, id="b", state="failed", problems=texts, why_unscored=texts[1], scored=0)
    output_path(lab.home, "b").write_text("\n".join(texts))
    is_harmless(there.get("/runs").text)
    is_harmless(there.get("/").text)


def test_stopping_is_a_wish_of_a_page_of_ours(lab: Lab, there: TestClient) -> None:
    put(lab)
    assert there.post("/runs/stop", data={"run": "a-1"}).status_code == 403
    assert there.get("/runs/stop?run=a-1").status_code == 404
    assert not seen(lab.home)[0].stopping
    answer = there.post("/runs/stop", data={"run": "a-1"}, headers=OURS)
    assert seen(lab.home)[0].stopping
    told = Parts(answer.text).text
    assert "500 of 2,000 turns, stopping" in told
    assert "left" not in told
    assert 'action="/runs/stop"' not in answer.text
    answer = there.post("/runs/stop", data={"run": "../a-1"}, headers=OURS)
    assert (answer.status_code, "this run has ended" in answer.text) == (400, True)


def test_resuming_starts_the_same_once(lab: Lab, there: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[list[str]] = []

    class Begun:
        pid = 1

        def __init__(self, command: list[str], **how: Any) -> None:
            assert how["start_new_session"]
            assert how["env"]["EVAL_HOME"] == str(lab.home.root)
            began.append(command)

    monkeypatch.setattr(resuming.subprocess, "Popen", Begun)
    put(lab, state="stopped", problems=["the endpoint was down"])
    assert "the endpoint was down" in there.get("/runs").text
    assert there.post("/runs/resume", data={"run": "a-1"}).status_code == 403
    answer = there.post("/runs/resume", data={"run": "a-1"}, headers=OURS)
    told = Parts(answer.text).text
    assert "running for 0 s" in told
    assert "500 of 2,000 turns" in told
    assert "left" not in told  # the pace is not known yet
    again = there.post("/runs/resume", data={"run": "a-1"}, headers=OURS)
    assert (again.status_code, "goes on already" in again.text) == (400, True)
    assert [command[1:] for command in began] == [["-m", resuming.PROGRAM, "a-1"]]
    monkeypatch.setattr(resuming.subprocess, "Popen", subprocess.Popen)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"process": "other@x 1 2"}, "It runs on other."),
        ({"process": "other@x 1 2", "at": 1.0}, "other, which has not written for a while"),
        ({"process": f"{host()} 1 x"}, "Its process was ended from outside"),
        ({"process": "other@x 1 2", "state": "stopped"}, "canceled"),
    ],
)
def test_what_cannot_be_known_or_done_from_here_is_said(
    lab: Lab, there: TestClient, told: dict[str, Any], text: str
) -> None:
    write_status(lab.home, replace(RUNS, **({"at": time.time()} | told)))
    page = there.get("/runs").text
    assert text in Parts(page).text
    if "other" in told["process"] and told.get("state"):
        assert 'action="/runs/resume"' not in page
        answer = there.post("/runs/resume", data={"run": "a-1"}, headers=OURS)
        assert (answer.status_code, "started on other" in answer.text) == (400, True)


def test_a_home_that_can_only_be_read_offers_nothing(
    lab: Lab, there: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lab)
    monkeypatch.setattr("eval_pipeline.workspace.watching.running.os.access", lambda *_: False)
    page = there.get("/runs").text
    assert "can only be read from here" in page
    assert "<form" not in page
    with Bench.of(replace(lab.home, bucket=BucketAddress("evals", "home"))) as bench:
        assert "runs of other hosts are shown there only" in let_in(bench).get("/runs").text
