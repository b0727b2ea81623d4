"""The page about a turn: everything the store holds of it, whatever the model wrote."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Message, Prompt
from eval_pipeline.operations.reviews import reviewing
from eval_pipeline.reports.shown import NO_ROLE, messages_of
from eval_pipeline.stages.scoring.metric_runner import UNSCORED
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Explains, Seen
from eval_pipeline.tracks.shown.cards import FactsCard
from eval_pipeline.view.drawing import render
from eval_pipeline.view.published import StoreView
from eval_pipeline.view.turn import parts
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, HOSTILE_CASE, HOSTILE_TEXTS, STEADY, SUITE
from eval_pipeline_tests.view.pages import Parts, changed, is_harmless, turn_of, turns_of

RECOVERED = turn_of("harbour/ship_03#1", STEADY, "2026-03-01")


def test_a_turn_is_told_from_question_to_answer_with_its_history(client: TestClient, look: StoreView) -> None:
    text = Parts(client.get(RECOVERED).text).text
    for said in ("ship_03 1?", "Gold 20", "Answer 20", "✓ right", "2 attempts", "220 tokens", "odd"):
        assert said in text, said
    assert "First answer failed: syntax_error" in text
    assert '{"plan": [' in text
    assert "Recovery attempt 1 ran" in text
    assert "the report of ship_03." in text, "the prompt is there as a conversation"
    metrics = look.rows("SELECT DISTINCT metric FROM metrics WHERE turn_id = 'harbour/ship_03#1'")
    assert len(metrics) > 10
    for row in metrics:
        assert row["metric"] in text
    html = client.get(RECOVERED).text
    history = html.partition('<h2 id="history">')[2]
    assert [address.partition("model_version=")[2] for address in Parts(history).links("/turn?")] == [
        "falling&eval_date=2026-03-02", "hostile&eval_date=2026-03-02",
        "falling&eval_date=2026-03-01", "steady&eval_date=2026-03-01",
    ]  # fmt: skip
    current = ["aria-current" in a for tag, a in Parts(history).elements if tag == "tr"]
    assert current[1:] == [False, False, False, True]


def test_previous_and_next_stay_in_the_filter(client: TestClient) -> None:
    row = Parts(client.get(turns_of(FALLING, verdict="wrong", sort="question", order="desc")).text).rows()
    found = Parts(client.get(row[0]).text)
    assert (found.link("data-earlier"), found.link("data-later")) == (None, row[1])
    assert "1 of 12 turns of the filter" in found.text
    found = Parts(client.get(row[11]).text)
    assert (found.link("data-earlier"), found.link("data-later")) == (row[10], None)
    found = Parts(client.get(turn_of("harbour/ship_00#0", FALLING, verdict="wrong")).text)
    assert "not among the 12 turns of the filter" in found.text


@pytest.mark.parametrize("index", range(len(HOSTILE_TEXTS)))
def test_hostile_texts_are_shown_and_do_nothing(client: TestClient, index: int) -> None:
    address = turn_of(f"harbour/{HOSTILE_CASE}#{index}", HOSTILE)
    html = client.get(address).text
    is_harmless(html)
    assert len(html) < 400_000
    beginning = HOSTILE_TEXTS[index][:5]
    assert beginning in Parts(html).text


@pytest.mark.always
def test_a_long_response_is_cut_and_what_is_not_there_is_told(client: TestClient) -> None:
    address = turn_of(f"harbour/{HOSTILE_CASE}#6", HOSTILE)
    found = Parts(client.get(address).text)
    assert "The first 20,000 of 1,000,006 characters." in found.text
    answer = client.get(found.links("field=response")[0])
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text == HOSTILE_TEXTS[6]
    for address in (turn_of("harbour/nobody#0", HOSTILE), turn_of("harbour/ship_00#0", HOSTILE, sample=1)):
        assert client.get(address).status_code == 404
    assert client.get(turn_of("harbour/ship_00#0", HOSTILE, sample="x")).status_code == 400
    plain = turn_of("harbour/ship_00#0", HOSTILE).replace("/turn?", "/turn/text?")
    assert client.get(f"{plain}&number=7").status_code == 404
    assert client.get(f"{plain}&field=metadata").status_code == 400
    html = client.get(turn_of(f"harbour/{HOSTILE_CASE}#1", HOSTILE)).text
    assert json.dumps(HOSTILE_TEXTS[1])[1:8] in Parts(html).text
    assert client.get(turn_of(f"{SUITE}/ship_00#1", FALLING, sample=10**45)).status_code in {400, 404}


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text("ab \n[]", max_size=20)), min_size=1)
)
def test_a_prompt_is_taken_apart_as_it_was_put_together(said: list[tuple[str, str]]) -> None:
    messages = tuple(Message(*pair) for pair in said)
    assert tuple(messages_of(Prompt(messages).text())) == messages


def test_a_prompt_of_another_form_is_one_message() -> None:
    for prompt in ("whatever\n\n[user]\nasked", "\n\n[user]\nasked", "no message starts", "[tool]\nsaid", ""):
        assert list(messages_of(prompt)) == [Message(NO_ROLE, prompt)]


def explaining(monkeypatch: pytest.MonkeyPatch, found: object) -> None:
    """Has every track show what a function makes of what it sees."""
    monkeypatch.setattr(parts, "cards_of", found)


@pytest.mark.always
def test_a_track_is_shown_the_turn_with_what_went_before_and_its_cards_may_fail(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Seen] = []

    def seen_cards(track: Track, seen: Seen) -> list[FactsCard]:
        told.append(seen)
        return [FactsCard("The track says", [("answer", str(seen.attempts[-1].outcome.value))])]

    explaining(monkeypatch, seen_cards)
    assert "The track says" in client.get(RECOVERED).text
    (seen,) = told
    assert (seen.turn.id, seen.case.id, seen.history) == ("harbour/ship_03#1", "ship_03", "gold")
    assert [attempt.number for attempt in seen.attempts] == [0, 1]
    assert [(turn.id, len(attempts)) for turn, attempts in seen.earlier] == [("harbour/ship_03#0", 1)]
    assert [evidence.verdict for evidence in seen.evidence] == ["equal"]

    def broken(track: Track, seen: Seen) -> list[FactsCard]:
        raise ZeroDivisionError("<b>")

    explaining(monkeypatch, broken)
    answer = client.get(RECOVERED)
    assert answer.status_code == 200
    assert "The track cannot show this turn (ZeroDivisionError)." in answer.text
    assert "Attempts" in answer.text
    assert Explains.__abstractmethods__ == {"cards"}


def test_a_turn_or_a_prompt_that_is_not_known_any_more_is_told(home: Home, tmp_path: Path, client: TestClient) -> None:
    recorded = "UPDATE model_versions SET recorded = true"
    provenance = """UPDATE attempts SET metadata = '{"provenance": {}}' WHERE model_version = 'falling'"""
    with changed(home, tmp_path, recorded, provenance) as reader:
        text = Parts(reader.get(RECOVERED).text).text
        assert "What the model was asked is not known: the answer was made elsewhere." in text
        assert "the report of ship_03." not in text
        known = Parts(reader.get(turn_of("harbour/ship_03#1", FALLING)).text).text
        assert "the report of ship_03." in known
    untold = "UPDATE prompts SET text = 'unknown'"
    with changed(home, tmp_path, recorded, provenance, untold) as reader:
        text = Parts(reader.get(turn_of("harbour/ship_03#1", FALLING)).text).text
        assert "What the model was asked is not known" in text
    words = "another question or gold for this turn by now"
    assert words not in client.get(RECOVERED).text
    with changed(home, tmp_path, "UPDATE turns SET expected = '21' WHERE turn_id = 'harbour/ship_03#1'") as reader:
        assert words in reader.get(RECOVERED).text
    with changed(home, tmp_path, "DELETE FROM cases WHERE case_id = 'ship_03'") as reader:
        assert "The suite has this turn no more" in reader.get(RECOVERED).text


def test_the_prompt_is_held_against_that_of_the_first_side(home: Home, client: TestClient, tmp_path: Path) -> None:
    sides = {"versions": f"{STEADY},{FALLING}", "eval_dates": "2026-03-01,2026-03-02"}
    address, beside = turn_of("harbour/ship_03#1", FALLING, **sides), f"/suites/harbour/compare?{urlencode(sides)}"
    link, changed_one = "asked with another prompt than A", "The same prompt as A (steady, 2026-03-01) was given."
    assert changed_one in Parts(client.get(address).text).text
    assert link not in client.get(beside).text
    assert "against that of A" not in client.get(turn_of("harbour/ship_03#1", STEADY, "2026-03-01", **sides)).text
    assert "against that of A" not in client.get(turn_of("harbour/ship_03#1", FALLING)).text
    of_falling = "model_version = 'falling' AND eval_date = '2026-03-02'"
    other = (
        f"UPDATE attempts SET prompt_hash = '{text_hash('unknown')}' WHERE {of_falling}",
        f"INSERT INTO prompts BY NAME SELECT '{text_hash('unknown')}' AS prompt_hash, 'unknown' AS text",
        "UPDATE model_versions SET recorded = true WHERE model_version = 'falling'",
    )
    with changed(home, tmp_path, *other) as reader:
        assert "the prompts cannot be compared" in Parts(reader.get(address).text).text
        assert link not in reader.get(beside).text
    with changed(home, tmp_path, other[0], other[1].replace("'unknown' AS", "'count' AS")) as reader:
        text = Parts(reader.get(address).text).text
        assert "is not on record, so the prompts cannot be compared" in text, "a program's own prompts are not known"
        assert "task, as the program was told" in text
    with changed(home, tmp_path, other[0], other[1].replace("'unknown' AS", "'[system]\n<b>be brief' AS")) as reader:
        assert "<del>" in reader.get(address).text
        assert "&lt;b&gt;" in reader.get(address).text


def test_a_track_is_shown_the_gold_that_is_scored_by(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gold_card(track: Track, seen: Seen) -> list[FactsCard]:
        return [FactsCard("Gold", [("is", track.expected_text(seen.turn))])]

    explaining(monkeypatch, gold_card)
    override = """INSERT INTO gold_overrides BY NAME SELECT 'harbour' AS suite, 'harbour/ship_03#1' AS turn_id,
        'ship_03' AS case_id, 1 AS turn_index, 'corrected' AS action, 'A' AS who, 'B' AS why, 1 AS source_line,
        '{"program": "add(13, 8)", "answer": 21}' AS gold"""
    with changed(home, tmp_path, override) as reader:
        assert "Gold is 21" in Parts(reader.get(RECOVERED).text).text


SHIP = turn_of(f"{SUITE}/ship_00#1", FALLING)


def test_stores_of_another_version_or_without_the_track_are_shown_or_a_sentence(home: Home, tmp_path: Path) -> None:
    with changed(home, tmp_path, "DROP VIEW leaderboard_details") as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "`eval-pipeline publish --full` rebuilds it" in Parts(answer.text).text
    with changed(home, tmp_path, "DROP VIEW latest_finqa_turns", "DROP TABLE finqa_turns") as client:
        assert "✗ wrong" in client.get(SHIP).text
        assert client.get(turns_of(FALLING)).status_code == 200


def test_turns_of_a_suite_that_has_become_broken_are_shown(home: Home, tmp_path: Path) -> None:
    (tmp_path / "suites" / SUITE).mkdir(parents=True)
    (tmp_path / "suites" / SUITE / "suite.yaml").write_text("name: [")
    (tmp_path / "store").mkdir()
    with changed(Home(home.root, tmp_path), tmp_path / "store") as client:
        answer = client.get(SHIP)
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


def test_who_has_no_name_on_this_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(reviewing.getpass, "getuser", unknown)
    assert reviewing.own_name() == ""


def seen_with(*metrics: dict[str, Any], track: str = "pandas") -> Any:
    rows = [dict.fromkeys(("value", "label", "reason", "details", "error")) | row for row in metrics]
    return SimpleNamespace(
        evaluation=SimpleNamespace(track=track), rows=lambda table, by: rows if table == "metrics" else []
    )


def test_metrics_that_reports_show_apart_are_not_among_those_of_a_turn() -> None:
    seen = seen_with({"metric": "coverage_score"}, {"metric": "coverage_score_from_words"})
    assert [row["metric"] for row in parts._metrics(seen)["plain"]] == ["coverage_score"]


def test_a_turn_that_cannot_be_scored_says_why_once() -> None:
    why = f"{UNSCORED}its program gives 5"
    seen = seen_with(*({"metric": name, "reason": why} for name in ("correct", "tokens")))
    page = render("parts/metrics.html.j2", its=parts._metrics(seen))
    assert page.count(why) == 1
    assert "2 metrics have no value" in page
