"""Pages about turns of each track: what its cards show is on them, and nothing that is in it runs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.stages.reporting import profile
from eval_pipeline.store.record import Record
from eval_pipeline.tracks.registry import load_track
from eval_pipeline.view.page import Bench
from eval_pipeline_tests.support import built_once
from eval_pipeline_tests.view.pages import Parts, is_harmless, let_in
from eval_pipeline_tests.view.track_homes import DAY, build, has_sandbox, home_in

SEEN = {
    "pages/fuel#1": [
        "why 8 instead of 7.",
        "sales 50 (used by gold and answer)",
        "Gold add(50, 7 ) Answer add(50, 8 )",
        "#2 add(#0, #1) 58 (wrong)",
        "0 fuel 0? 50 50 (right)",
    ],
    "pages/fuel#0": ["Gold 50 Answer 50", "#0 read 50 50 (right)"],
    "shop/oslo#0": [
        "Rows: 2 missing, 1 not expected.",
        "1 Ada (missing) 2 Cy (missing)",
        "1 Bo (not expected)",
        "WHERE city = ' Oslo ' Answer",
    ],
    "shop/totals#0": ["Rows returned, the same as expected", "the queries are the same text (right)"],
    "stall/talk#0": ["Expected, 1 row", "3 (missing)", "6 (wrong) expected 3", "wrong filter"],
    "stall/talk#1": ["The same rows.", "the expected one (right)"],
    "stall/totals#0": ["Where it fails", "(wrong)"],
    "terms/c1#0": ["INDICATOR GDP (right) gross domestic product right"],
    "terms/c1#1": [
        "D:TWO (not expected)",
        "GDP (missing) gross domestic product missing",
        "GDPPC (not expected) GDP per capita not expected",
    ],
    "terms/c1#2": ["The selection, which did not run", "Not in the catalogue: 1 of 1 codes."],
    "shop/harm#0": ["Rows: 2 missing, 1 not expected."],
    "shop/more#0": [
        "wrong_answer, extra_columns, wrong in form",
        "the same rows, but with 1 more column `id`",
        "compare: {overlook: [extra_columns]}",
    ],
    "stall/largest#0": ["Results"],
}
"""What is read on the page of a turn."""


@pytest.fixture(scope="module")
def tracks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with (
        pytest.MonkeyPatch.context() as patch,
        Bench.of(home_in(built_once(tmp_path_factory, "tracks", build))) as bench,
    ):
        patch.setenv("EVAL_HOME", str(bench.home.root))
        patch.setenv("EVAL_DATA", str(bench.home.data))
        yield let_in(bench)


@pytest.mark.parametrize("turn_id", SEEN)
def test_the_page_of_a_turn_shows_its_cards(turn_id: str, tracks: TestClient) -> None:
    if turn_id.startswith("stall") and not has_sandbox():
        pytest.skip("nothing on this machine can hold code")
    named = {"turn_id": turn_id, "model_version": "puppet", "eval_date": DAY.isoformat()}
    response = tracks.get(f"/suites/{turn_id.partition('/')[0]}/turn?{urlencode(named)}")
    assert response.status_code == 200
    is_harmless(response.text)
    text = Parts(response.text).text
    assert "The track cannot show this turn" not in text
    for told in SEEN[turn_id]:
        assert told in text, text
    # Who reviews it sees what gold and answer gave when they ran, with no mark and no word about which is right.
    review = tracks.get(f"/suites/{turn_id.partition('/')[0]}/review?{urlencode(named)}").text
    is_harmless(review)
    seen = review[review.index("<main") : review.index("<form")]
    assert not re.findall(r"<mark|✓|✗|same as|not expected|Rows:|failure", seen)
    ran = {"shop": "Rows on the suite&#39;s database", "stall": "Results"}.get(turn_id.partition("/")[0])
    assert ran is None or (ran in seen and seen.count(">Answer</h4>") == 1)


def test_wrong_answers_are_filtered_by_whether_form_or_meaning_is_wrong(tracks: TestClient) -> None:
    def turns(suite: str, wrong_in: str) -> str:
        named = {"model_version": "puppet", "eval_date": DAY.isoformat(), "wrong_in": wrong_in}
        return tracks.get(f"/suites/{suite}/turns?{urlencode(named)}").text

    for wrong_in, expected in {"form": ["more"], "meaning": ["harm", "oslo"]}.items():
        html = turns("shop", wrong_in)
        rows = [row for row in Parts(html).rows() if "turn_id=shop" in row]
        assert [name for name in ("harm", "more", "oslo", "totals") if f"{name}%230" in "".join(rows)] == expected
        assert all(f"wrong_in={wrong_in}" in row for row in rows), "the next and previous turn are those of the filter"
        assert "form (1)" in Parts(html).text
        assert "meaning (2)" in Parts(html).text
    assert "turns of this track have no distinction of form and meaning" in Parts(turns("pages", "form")).text


def test_reports_read_how_many_of_each_failure_mode_are_right_but_for_form(tracks: TestClient) -> None:
    record = Record(Path(os.environ["EVAL_HOME"]) / "record")
    of_sql, of_finqa = (
        Evaluation(record, Partition(suite, "puppet", DAY), profile(load_track(track)))
        for suite, track in (("shop", "sql"), ("pages", "finqa"))
    )
    assert of_sql.wrong_in_form == {"extra_columns": 1}
    assert of_finqa.wrong_in_form is None
    assert {row["contract"]: row["correct"] for row in of_sql.own_contracts} == {
        "exact": 1, "expert": 2, "bird": 1, "spider": 1, "defog": 2, "livesqlbench": 1,
    }  # fmt: skip


def test_an_evaluation_that_stands_beside_no_other_is_shown_by_itself(tracks: TestClient) -> None:
    shown = tracks.get("/suites/pages/compare")
    assert (shown.status_code, shown.url.path) == (200, "/suites/pages/turns")
    assert shown.url.params["model_version"] == "puppet"
    assert tracks.get("/suites/pages/compare?versions=puppet").status_code == 400
    assert tracks.get("/suites/none/compare").status_code == 404
