"""Stores of other versions and packages, long texts, addresses that nobody would write: sentences, no faults."""

from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.operations import reviewing
from eval_pipeline_tests.view.changing import changed
from eval_pipeline_tests.view.homes import FALLING, SUITE
from eval_pipeline_tests.view.pages import Parts, turn_of, turns_of

TURN = turn_of(f"{SUITE}/ship_00#1", FALLING)


def test_a_store_of_another_version_is_a_sentence(home: Home, tmp_path: Path) -> None:
    with changed(home, tmp_path, "DROP MACRO TABLE leaderboard_details", "DROP MACRO TABLE leaderboard") as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "`eval-pipeline publish --full` rebuilds it" in Parts(answer.text).text


def test_turns_of_a_track_that_is_not_installed_are_shown(home: Home, tmp_path: Path) -> None:
    with changed(home, tmp_path, "DROP VIEW latest_finqa_turns", "DROP TABLE finqa_turns") as client:
        assert "✗ wrong" in client.get(TURN).text
        assert client.get(turns_of(FALLING)).status_code == 200


def test_turns_of_a_suite_that_has_become_broken_are_shown(home: Home, tmp_path: Path) -> None:
    (tmp_path / "suites" / SUITE).mkdir(parents=True)
    (tmp_path / "suites" / SUITE / "suite.yaml").write_text("name: [")
    (tmp_path / "store").mkdir()
    with changed(Home(home.root, tmp_path), tmp_path / "store") as client:
        answer = client.get(TURN)
    assert answer.status_code == 200
    assert "✗ wrong" in answer.text


@pytest.mark.parametrize("letter", ["x", "字", '"', "\\"])
def test_lists_sorted_by_long_texts_go_on(letter: str, home: Home, tmp_path: Path) -> None:
    long = f"UPDATE turn_results SET question = repeat('{letter}', 2000) || question"
    with changed(home, tmp_path, long) as client:
        seen: list[str] = []
        address: str | None = turns_of(FALLING, sort="question", size="10")
        while address:
            answer = client.get(address)
            assert answer.status_code == 200, Parts(answer.text).text
            page = Parts(answer.text)
            seen += page.rows()
            address = page.link("data-later")
    assert len(seen) == len(set(seen)) == 31


@pytest.mark.parametrize(
    "place", ['["x","c",Infinity,0]', "[" * 900, '["x","c",1e400,0]', "[null]", '["x","\\ud800",0,0]', "nonsense"]
)
@pytest.mark.parametrize(
    "page", [turns_of(FALLING, sort="question"), f"/suites/{SUITE}/compare?versions=steady,falling"]
)
def test_a_place_that_is_none_is_a_sentence(page: str, place: str, client: TestClient) -> None:
    answer = client.get(f"{page}&after={quote(place)}")
    assert answer.status_code in {200, 400}


def test_a_sample_that_no_database_can_hold_is_a_sentence(client: TestClient) -> None:
    assert client.get(turn_of(f"{SUITE}/ship_00#1", FALLING, sample=10**45)).status_code in {400, 404}


def test_who_has_no_name_on_this_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(reviewing.getpass, "getuser", unknown)
    assert reviewing.own_name() == ""
