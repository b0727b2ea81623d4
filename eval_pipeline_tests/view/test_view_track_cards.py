"""Pages about turns of each track: what its cards show is on them, and nothing that is in it runs."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from eval_pipeline.view.app import application
from eval_pipeline.view.page import Bench
from eval_pipeline.web.guard import Door
from eval_pipeline_tests.support import built_once
from eval_pipeline_tests.view.pages import Parts, is_harmless
from eval_pipeline_tests.view.track_homes import DAY, build, has_sandbox, home_in

PORT = 3100

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
        yield TestClient(application(bench, Door(PORT, None, forms=True)), base_url=f"http://127.0.0.1:{PORT}")


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
