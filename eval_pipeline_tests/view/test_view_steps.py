"""What an agent did, on the page of a turn: a timeline with the wrong step, and two attempts beside each other."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from eval_pipeline.sandbox.jail import system_bwrap, wheel_bwrap
from eval_pipeline.tracks.shown.cards import TimelineCard, TimelineStep
from eval_pipeline.view.drawing import render
from eval_pipeline.view.page import Bench
from eval_pipeline.view.turn.beside import aligned
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_tests.fakes.agent_server import AgentServer, Call
from eval_pipeline_tests.services import no_jail
from eval_pipeline_tests.support import DAY, Lab, built_once, surroundings
from eval_pipeline_tests.view.pages import Parts, is_harmless, let_in

HARM = "<script>window.pwned = 1</script>\u202e\x1b[31m"
TASK = "How many are there?"
SAID: dict[str, list[Call]] = {
    "one": [
        ("shell", {"command": "cat stock.csv"}),
        ("shell", {"command": "false"}),
        ("answer", {"answer": f"7 {HARM}"}),
    ],
    "other": [
        ("list_files", {}),
        ("shell", {"command": "cat  stock.csv"}),
        ("answer", {"answer": 8}),
    ],
}
SAMPLES = {"one": 2, "other": 1}

STEPS = st.lists(
    st.builds(
        TimelineStep, st.just(0), st.sampled_from("abc"), st.sampled_from(["", "x", "Y  z"]), st.sampled_from("rs")
    ),
    max_size=8,
)


@given(STEPS, STEPS)
def test_every_step_with_a_text_stands_in_one_line_in_its_order(
    first: list[TimelineStep], second: list[TimelineStep]
) -> None:
    pairs = aligned(first, second)
    assert [pair.first for pair in pairs if pair.first is not None] == first
    assert [pair.second for pair in pairs if pair.second is not None] == second
    assert all(pair != (None, None) for pair in pairs)
    assert all(pair.same for pair in aligned(first, first))


def test_steps_that_do_the_same_stand_beside_each_other() -> None:
    def step(place: int, by: str, call: str, result: str = "") -> TimelineStep:
        return TimelineStep(place, by, call, result)

    first = [
        step(0, "model", ""),
        step(1, "sql", "SELECT 1", "1"),
        step(2, "sql", "SELECT 2", "2"),
        step(3, "answer", "2"),
    ]
    second = [step(0, "shell", "ls"), step(1, "sql", "select  1", "1"), step(2, "shell", "ls"), step(3, "answer", "2")]
    found = [(a and a.place, b and b.place, pair.same) for pair in aligned(first, second) for a, b in [pair]]
    assert found == [
        (None, 0, ""),
        (1, 1, "call and result"),
        (2, 2, ""),
        (3, 3, "call and result"),
    ]


def test_the_wrong_step_is_named_first_and_nothing_of_a_step_can_run() -> None:
    steps = [TimelineStep(n, f"{HARM}{n}", HARM, [[HARM], [HARM]], HARM, [HARM], HARM, HARM) for n in range(15)]
    html = render("parts/cards.html.j2", its={"cards": [TimelineCard("It", steps)], "missing": ""})
    is_harmless(html)
    plain = [TimelineStep(0, "sql", "SELECT 1", "1"), TimelineStep(1, "answer", "2", remark="nothing gave 2")]
    html = render("parts/cards.html.j2", its={"cards": [TimelineCard("It", plain, left_out=3)], "missing": ""})
    text = Parts(html).text
    assert text.index("First wrong step: 1, answer") < text.index("SELECT 1")
    assert 'href="#step-1"' in html
    assert "First wrong step: nothing gave 2" in text
    assert "all 2 sql 1 answer 1" in text
    assert "2 of 5 steps shown" in text


def build(folder: Path) -> None:
    lab = Lab.at(folder)
    gold = [{"shell": "cat stock.csv"}, {"answer": 8}]
    world = lab.suite("shelf", [{"id": "count", "world": "shop", "task": TASK, "gold": gold}], track="agent")
    world /= "worlds/shop"
    (world / "files").mkdir(parents=True)
    (world / "world.yaml").write_text("description: A shelf.\n")
    (world / "files" / "stock.csv").write_text("n\n8\n")
    with surroundings(lab):
        try:
            for version, calls in SAID.items():
                with AgentServer({TASK: calls}) as server:
                    options = {"base_url": f"{server.url}/v1", "api_key_env": None}
                    told = {
                        "provider": "openai",
                        "model": "m",
                        "samples_per_turn": SAMPLES[version],
                        "options": options,
                    }
                    lab.versions({"name": version, **told})
                    lab.evaluate("shelf", version, publish=True)
        finally:
            close_worlds()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    if system_bwrap() is None and wheel_bwrap() is None:
        raise no_jail("nothing on this machine can hold an agent")
    home = Lab.at(built_once(tmp_path_factory, "shelf", build)).home
    with pytest.MonkeyPatch.context() as patched, Bench.of(home) as bench:
        patched.setenv("EVAL_HOME", str(home.root))
        patched.setenv("EVAL_DATA", str(home.data))
        yield let_in(bench)


def page(client: TestClient, version: str, at: str = "turn", **named: str) -> str:
    told = {"turn_id": "shelf/count#0", "model_version": version, "eval_date": DAY.isoformat(), **named}
    response = client.get(f"/suites/shelf/{at}?{urlencode(told)}")
    assert response.status_code == 200, response.text
    is_harmless(response.text)
    return response.text


def test_two_attempts_are_reached_from_each_other_and_stand_beside_each_other(shelf: TestClient) -> None:
    alone = page(shelf, "one")
    text = Parts(alone).text
    assert "all 6 failed 1 model 3 shell 2 answer 1" in text, text[text.index("Question") :][:1500]
    assert "Steps side by side" not in alone
    assert "<summary>The response, as JSON</summary>" in alone
    sample, evaluation = Parts(alone).links("#beside")
    html = shelf.get(evaluation).text
    is_harmless(html)
    text = Parts(html).text
    beside = text[text.index("Steps side by side") :]
    assert "the same call of shell, the same result" in beside
    assert beside.index("list_files") < beside.index("the same call of shell") < beside.index("false")
    html = shelf.get(sample).text
    is_harmless(html)
    beside = Parts(html).text.partition("Steps side by side")[2]
    assert beside.index("~1") < beside.index("the same call of shell, the same result")
    assert "list_files" not in beside[: beside.index("Attempts")]


def test_whoever_reviews_an_attempt_sees_what_it_did(shelf: TestClient) -> None:
    text = Parts(page(shelf, "one", at="review")).text
    assert text.index("A solution") < text.index("all 6 failed 1 model 3 shell 2 answer 1")
    assert "stock.csv" in text and "What the metrics say" not in text


@pytest.mark.parametrize(
    ("version", "named", "found"),
    [
        ("one", {"tool": "shell"}, 2),
        ("one", {"tool": "shell", "tool_error": "other_error"}, 2),
        ("one", {"tool": "answer", "tool_error": "other_error"}, 0),
        ("one", {"tool": "list_files"}, 0),
        ("other", {"tool": "list_files"}, 1),
        ("other", {"tool_error": "other_error"}, 0),
    ],
)
def test_turns_are_found_by_a_tool_that_was_called_and_how_it_failed(
    shelf: TestClient, version: str, named: dict[str, str], found: int
) -> None:
    html = shelf.get(f"/suites/shelf/turns?{urlencode({'model_version': version, **named})}").text
    text = Parts(html).text
    assert f"{found} of {SAMPLES[version]} turn" in text, text[text.index("Filter") :][:1500]
    assert ("list_files (1)" in text) is (version == "other")


def test_evaluations_side_by_side_lead_to_the_steps_and_show_no_stored_attempt(shelf: TestClient) -> None:
    days = ",".join([DAY.isoformat()] * 2)
    html = shelf.get(f"/suites/shelf/compare?{urlencode({'versions': 'one,other', 'eval_dates': days})}").text
    assert "end_state" not in html
    assert Parts(html).text.count("what it did") == 2
