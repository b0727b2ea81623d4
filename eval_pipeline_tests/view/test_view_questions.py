"""What people ask of an evaluation, and of an earlier one of its date: filters, and addresses that answer."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import duckdb
import pytest
from starlette.testclient import TestClient

from eval_pipeline.core.covering.coverage import Try, turns_reached
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.providers.base import Call
from eval_pipeline.view.evaluation import evaluation_at
from eval_pipeline.view.filtering.filter import Filter
from eval_pipeline.view.filtering.questions import questions, week_before
from eval_pipeline.view.filtering.sql import turns_sql
from eval_pipeline.view.page import Bench
from eval_pipeline.view.published import StoreView
from eval_pipeline.workspace.evaluations import evaluations
from eval_pipeline_tests.support import DAY, Lab, Puppet, number
from eval_pipeline_tests.view.homes import FALLING, FIRST, HOSTILE, LAST, STEADY, SUITE
from eval_pipeline_tests.view.pages import Parts, changed, is_harmless, let_in, turns_of

VERSION = "puppet+terse"
NOW = Partition(SUITE, FALLING, LAST)
_NEXT = "2026-03-03"
_COPY = "INSERT INTO turn_results SELECT * REPLACE ({}) FROM turn_results WHERE model_version = 'falling' AND {}"
STATEMENTS = (
    # Of what was right first and then wrong, three turns are right again; of one, the first gold was another.
    _COPY.format(f"DATE '{_NEXT}' AS eval_date, correct OR case_id <= 'ship_02' AS correct", f"eval_date = '{LAST}'"),
    f"UPDATE turn_results SET expected = '0' WHERE case_id = 'ship_01' AND eval_date = '{FIRST}'",
    # Of one turn, a second sample is wrong; of another, alike.
    _COPY.format("1 AS sample, case_id = 'ship_08' AS correct", f"case_id IN ('ship_07', 'ship_08') "
                 f"AND turn_index = 0 AND eval_date = '{LAST}'"),
    # Calls that failed: without a response, refused, not made for want of money; and one that cannot be read.
    *(
        f"UPDATE attempts SET stop_reason = NULL, artefact = NULL, call_error = '{why}' "
        f"WHERE model_version = 'falling' AND eval_date = '{LAST}' AND turn_id LIKE '%{turn}'"
        for turn, why in (("ship_04#0", "timeout"), ("ship_05#0", "refused"), ("ship_06#0", "budget"))
    ),
    f"UPDATE attempts SET artefact = NULL WHERE eval_date = '{LAST}' AND turn_id LIKE '%ship_09#0'",
)  # fmt: skip


@pytest.fixture(scope="module")
def other(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One who is let in to a store with a third date, samples, and calls that failed."""
    with changed(home, tmp_path_factory.mktemp("asked"), *STATEMENTS) as reader:
        yield reader


def listed(client: TestClient, address: str) -> set[str]:
    """`<case>#<index>` of the turns that a page lists, with `~1` for the second sample."""
    html = client.get(address).text
    is_harmless(html)
    found = [
        (row.partition("turn_id=harbour%2F")[2].partition("&")[0], "sample=1" in row) for row in Parts(html).rows()
    ]
    return {turn.replace("%23", "#") + "~1" * second for turn, second in found}


def test_flaky_turns_disagree_in_samples_or_turn_back_over_dates(other: TestClient) -> None:
    """Right, wrong, right is flaky; right, wrong is a loss, and an answer held against another gold tells nothing."""
    assert "flaky turns: one sample" not in Parts(other.get(turns_of(FALLING)).text).text
    back = {"ship_00#1", "ship_02#1"}
    assert listed(other, turns_of(FALLING, only="flaky")) == {*back, "ship_07#0", "ship_07#0~1"}
    again = turns_of(FALLING, _NEXT, only="flaky")
    assert listed(other, again) == back
    assert "03\u201101 ✓ · 03\u201102 ✗ · 03\u201103 ✓" in Parts(other.get(again).text).text
    assert listed(other, turns_of(FALLING, str(FIRST), only="flaky", verdict="wrong")) == set()


def test_how_far_turns_got_is_counted_as_coverage_counts_it(home: Home, tmp_path: Path, other: TestClient) -> None:
    own = ("turn_id", "sample", "call_error", "stop_reason", "artefact")
    with duckdb.connect(shutil.copy(home.store, tmp_path / "eval.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
        for version in (FALLING, HOSTILE):
            mine = _of(replace(NOW, model_version=version))
            sql = f"SELECT {', '.join(own)} FROM attempts WHERE {mine} ORDER BY number"
            rows = connection.execute(sql).fetchall()
            reached = turns_reached(Try(*row[:3], *(value is not None for value in row[3:])) for row in rows)
            for name, wanted in (
                ("unanswered", [turn for (turn, _), got in reached.items() if not got.answered]),
                ("unreadable", [turn for (turn, _), got in reached.items() if got.answered and not got.readable]),
            ):
                found = listed(other, turns_of(version, only=name, column="sample", **{"is": "is", "value": 0}))
                assert {f"{SUITE}/{turn}" for turn in found if "ship" in turn} == {t for t in wanted if "ship" in t}
    without_attempts = {"ship_07#0~1", "ship_08#0~1"}
    assert listed(other, turns_of(FALLING, only="unanswered")) == {"ship_04#0", "ship_06#0", *without_attempts}
    assert listed(other, turns_of(FALLING, only="unreadable")) == {"ship_05#0", "ship_09#0"}
    assert other.get(turns_of(FALLING, only="nothing")).status_code == 400


def test_what_nobody_has_reviewed_knows_the_store_and_what_is_newer(
    home: Home, look: StoreView, tmp_path: Path, client: TestClient
) -> None:
    evaluation = evaluation_at(look, NOW)
    every = {row["turn_id"] for row in look.rows(turns_sql(evaluation, Filter(), ()))}
    assert len(listed(client, turns_of(FALLING, only="unreviewed"))) == len(every)
    first, second, third = sorted(turn for turn in every if "ship" in turn)[:3]
    hashed = "left(sha256(coalesce(response, '')), 32)"
    said = look.rows(f"SELECT turn_id, {hashed} AS hash FROM attempts WHERE {_of(NOW)} AND sample = 0")
    seen = {row["turn_id"]: row["hash"] for row in said}
    since = replace(evaluation, reviewed_since=((first, seen[first]), (second, "0" * 32)))
    left = {row["turn_id"] for row in look.rows(turns_sql(since, Filter(only=("unreviewed",)), ()))}
    assert left == every - {first}, "a review is of a response, and the second one is of another"
    row = (
        f"INSERT INTO reviews BY NAME SELECT '{SUITE}' AS suite, '{FALLING}' AS model_version, '{third}' AS turn_id, "
        f"'{seen[third]}' AS response_hash, 'x' AS review_id"
    )
    with changed(home, tmp_path, row) as reader:
        assert third.partition("/")[2] not in listed(reader, turns_of(FALLING, only="unreviewed"))


def test_answers_that_their_source_judged_otherwise(home: Home, look: StoreView, tmp_path: Path) -> None:
    rows = look.rows(
        f"SELECT turn_id, correct FROM turn_results WHERE {_of(NOW)} AND sample = 0 AND correct IS NOT NULL"
    )
    same, other, unsaid = (row["turn_id"] for row in rows[:3])
    said = {same: rows[0]["correct"], other: not rows[1]["correct"]}
    updates = [
        f"UPDATE attempts SET metadata = json_object('source', json_object('correct', {verdict})) "
        f"WHERE {_of(NOW)} AND turn_id = '{turn}' AND number = 0 AND sample = 0"
        for turn, verdict in said.items()
    ]
    assert unsaid not in said
    with changed(home, tmp_path, *updates) as reader:
        assert listed(reader, turns_of(FALLING, only="judged_otherwise")) == {other.partition("/")[2]}
        assert 'value="judged_otherwise"' not in reader.get(turns_of(FALLING)).text, "it was not recorded elsewhere"
    recorded = f"UPDATE model_versions SET recorded = true WHERE model_version = '{FALLING}'"
    for statements, offered in (([recorded], False), ([recorded, *updates], True)):
        with changed(home, tmp_path, *statements) as reader:
            assert ('value="judged_otherwise"' in reader.get(turns_of(FALLING)).text) is offered


def test_another_prompt_is_found_by_the_settings_whatever_the_model_version_is_called(
    home: Home, tmp_path: Path
) -> None:
    prompt = f"UPDATE runs SET prompt = 'plan-2' WHERE model_version = '{STEADY}'"
    patch = 'json_merge_patch(identity, \'{"prompt": "plan-2", "model": "another"}\')'
    model = f"UPDATE runs SET identity = {patch} WHERE model_version = '{STEADY}'"
    for statements, found in (((prompt,), True), ((prompt, model), False)):
        with changed(home, tmp_path, *statements) as reader:
            why_not = "asked with one prompt only" in Parts(reader.get(turns_of(FALLING)).text).text
            assert why_not is not found


def test_each_question_has_an_address_that_answers_it_or_says_why_not(client: TestClient, look: StoreView) -> None:
    asked = questions(look, NOW)
    unanswered = {one.words: one.why_not for one in asked if not one.address}
    assert unanswered == {
        "flaky turns": "one sample, on fewer than three dates", "what its prompt changed": "asked with one prompt only",
    }  # fmt: skip
    assert len(asked) == 8
    page = Parts(client.get(turns_of(FALLING)).text)
    for one in (one for one in asked if one.address):
        assert one.words in page.text and one.address in page.links()
        html = client.get(one.address).text
        section = one.address.partition("#")[2]
        assert (f'id="{section}"' in html) if section else len(Parts(html).rows()) or "No turn is like that" in html
    assert len(Parts(client.get(asked[0].address).text).rows()) == 12
    # The only date of a version, and the only version of a suite, cannot be held against anything.
    alone = questions(look, replace(NOW, model_version=STEADY, eval_date=FIRST))
    assert alone[0].why_not == "no date before this one"


_PART, _OTHER_PART = '{"sample_size":1}', '{"sample_size":2}'


@pytest.mark.parametrize(
    ("scopes", "wanted"),
    [
        (("full", "full", "full"), str(LAST)),
        (("full", _PART, "full"), str(FIRST)),
        ((_PART, _OTHER_PART, _PART), str(FIRST)),
        ((_PART, _PART, "full"), ""),
        (("full", "full", _PART), ""),
    ],
)
def test_dates_and_versions_are_paired_only_if_they_were_asked_the_same(
    home: Home, tmp_path: Path, scopes: tuple[str, ...], wanted: str
) -> None:
    """`scopes` are those of three dates of `falling`; the other two versions were asked the whole suite."""
    dates = {str(FIRST): scopes[0], str(LAST): scopes[1], _NEXT: scopes[2]}
    statements = [
        _COPY.format(f"DATE '{_NEXT}' AS eval_date", f"eval_date = '{LAST}'"),
        _COPY.format(f"DATE '{_NEXT}' AS eval_date, 'next' AS evaluation_id", f"eval_date = '{LAST}'").replace(
            "turn_results", "runs"
        ),
        *(f"UPDATE runs SET scope = '{scope}' WHERE model_version = 'falling' AND eval_date = '{day}'"
          for day, scope in dates.items()),
        # Of the same settings, so that it would be what another prompt made of it.
        f"UPDATE runs SET prompt = 'plan-2' WHERE model_version = '{STEADY}'",
    ]  # fmt: skip
    with changed(home, tmp_path, *statements) as reader:
        page = Parts(reader.get(turns_of(FALLING, _NEXT)).text)
        newest = Parts(reader.get(f"/suites/{SUITE}/compare").text)
    links = [unquote(link) for link in page.links("/compare?")]
    paired = [link for link in links if f"versions={FALLING},{FALLING}" in link]
    if wanted:
        assert f"what broke since {wanted}" in page.text
        oldest = next(day for day, scope in dates.items() if scope == scopes[2])
        assert f"which failure mode grew since {oldest}" in page.text, "no date is a week before"
        assert [f"eval_dates={day},{_NEXT}" in link for day, link in zip((wanted, oldest), paired, strict=True)] == [
            True
        ] * 2
    else:
        assert paired == []
        assert "on no date before this one was it asked the same part of the suite" in page.text
    others = [link for link in links if link not in paired]
    assert len(others) == (2 if scopes[2] == "full" else 0), "what others get right, and what its prompt changed"
    assert "another part of the suite" not in newest.text, "the newest two that were asked the same"


@pytest.mark.parametrize(
    ("days", "wanted"), [([27, 21, 20, 14], 21), ([27, 22], 22), ([21], 21), ([27, 26, 20, 1], 20)]
)
def test_a_week_before_is_the_newest_date_that_is_seven_days_old(days: list[int], wanted: int) -> None:
    assert week_before(date(2026, 11, 28), [date(2026, 11, day) for day in days]) == date(2026, 11, wanted)


@pytest.mark.parametrize(
    ("version", "chosen", "wanted"),
    [
        (FALLING, f"{FIRST},", (FALLING, FIRST)),
        (STEADY, f"{LAST},", (STEADY, FIRST)),  # which has no such date
        (FALLING, f"{FIRST},0123456789", (FALLING, FIRST)),  # an earlier one of another model version
        (FALLING, "nonsense", (FALLING, LAST)),
    ],
)
def test_the_form_leads_to_what_there_is(client: TestClient, version: str, chosen: str, wanted: tuple) -> None:
    answer = client.get(
        f"/suites/{SUITE}/turns",
        params={"model_version": version, "at": chosen, "verdict": "wrong"},
        follow_redirects=False,
    )
    assert answer.headers["location"] == turns_of(wanted[0], str(wanted[1]), verdict="wrong")


def _of(place: Partition) -> str:
    return f"suite = '{place.suite}' AND model_version = '{place.model_version}' AND eval_date = '{place.eval_date}'"


def _obeying(call: Call) -> str:
    return number(1) if "Say 1." in call.prompt.text() else call.gold.oracle()


def test_what_was_before_is_beside_what_is_now_and_has_pages_of_its_own(small: Lab) -> None:
    Puppet.answer = staticmethod(_obeying)
    for sentence in ("Be right.", "Say 1."):
        small.suite(prompts={"terse": {"instructions": sentence}})
        small.evaluate(version=VERSION, run_id=uuid4().hex, publish=True)
    now, before = evaluations(small.workspace(), "small", VERSION)
    with Bench.of(small.home) as bench:
        client = let_in(bench)
        found = client.get("/suites/small/compare", params={"a": f"{VERSION}@before", "b": VERSION})
        assert f"&evaluations={before.id},-" in str(found.url)
        is_harmless(found.text)
        text = Parts(found.text).text
        assert text.count(f"({DAY} ") > 4, "each is named with its time"
        assert "Only B wrong 3" in text and "Made with: prompt changed." in text
        assert "- Be right. + Say 1." in text
        by_id = client.get("/suites/small/compare", params={"a": before.id, "b": now.id})
        assert by_id.url == found.url
        assert client.get(f"{found.url}&q=plan&group=rw").status_code == 200

        for address in Parts(found.text).links(f"evaluation={before.id}"):
            page = client.get(address)
            assert page.status_code == 200
            is_harmless(page.text)
            assert (before.id in Parts(page.text).text) == ("/review" not in address), "reviewers are told no model"
        turns = f"/suites/small/turns?model_version=puppet%2Bterse&eval_date={DAY}"
        right = {place: Parts(client.get(turns + place).text).text.count("✓ right") for place in (
            "", f"&evaluation={before.id}", f"&evaluation={now.id}",
        )}  # fmt: skip
        assert list(right.values()) == [0, 3, 0]
        assert client.get(f"{turns}&evaluation=ffffffffff").status_code == 404
        # Another date of the form is that date, and the earlier one can be chosen there as well.
        page = client.get(f"{turns}&evaluation={before.id}").text
        assert f'<option value="{DAY},{before.id}" selected>' in page
        named = {"model_version": VERSION, "at": f"{DAY},"}
        assert str(client.get("/suites/small/turns", params=named).url).endswith(turns)
        with bench.published.look() as look:
            asked = questions(look, Partition("small", VERSION, DAY))
        changed_by = client.get(asked[-1].address)
        assert changed_by.url == found.url, "what its prompt changed"
