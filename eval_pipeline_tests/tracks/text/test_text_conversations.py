"""Cases with several turns, turns without a known answer, and cases that were drawn from traffic."""

import json
from typing import Any

import numpy as np
import pytest

from eval_pipeline.statistics.samples.sampling import Strata, drawn_rate, drawn_share
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.text.cases.case_file import TextCase, read_case
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.prompt import prompt_parts
from eval_pipeline_plugins.tracks.text.track import NOT_KNOWN, TRACK
from eval_pipeline_tests.support import Lab

OPTIONS = TextOptions.model_validate({"answer": {"form": "text"}})
TURNS = [{"question": "Capital of France?", "answer": "Paris"}, {"question": "And of Spain?", "answer": None}]


def case(**more: Any) -> TextCase:
    return read_case({"id": "a", "turns": TURNS, **more}, "s", "cases.jsonl", 1, OPTIONS)


def test_earlier_turns_are_shown_and_a_turn_without_an_answer_is_not_scored() -> None:
    found = case()
    asked = prompt_parts(found, found.turns[1], ["Paris, I think."], "text-1").prompt()
    assert [(message.role, message.text) for message in asked.messages[1:]] == [
        ("user", "Capital of France?"),
        ("assistant", "Paris, I think."),
        ("user", "And of Spain?"),
    ]
    assert [(turn.index, told) for turn, told in TRACK.check_gold(found)] == [(1, NOT_KNOWN)]
    assert TRACK.gold_place(1) == ("turns", 1)


def test_a_wrong_field_of_a_turn_is_named_with_its_place() -> None:
    with pytest.raises(CaseError) as raised:
        case(turns=[TURNS[0], {"question": "And?", "answer": {"no": "text"}}])
    assert raised.value.problems[0][0] == ("turns", 1, "answer")


def test_how_a_case_was_drawn_is_among_its_features() -> None:
    found = case(sampled={"stratum": "monday", "of": 10, "probability": 0.5})
    assert json.loads(json.dumps(dict(found.features))) == {
        "sampled_stratum": "monday",
        "sampled_of": 10,
        "sampled_probability": 0.5,
    }


def test_a_share_of_turns_weights_strata_and_counts_every_turn() -> None:
    # By hand: 10 x 1.5 + 30 x 0.5 right of 10 x 2 + 30 x 1 turns.
    strata = Strata(np.array([0, 0, 1, 1]), np.array([10, 30]))
    found = drawn_share([2, 1, 1, 0], [2, 2, 1, 1], strata)
    assert (found.n, found.population) == (4, 50.0)
    assert found.value == pytest.approx(0.6)
    assert found.low is not None and found.high is not None and found.low < 0.6 < found.high


@pytest.mark.parametrize("sizes", [(4000, 3000, 3000)])
def test_intervals_cover_the_share_of_the_population(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    population = [rng.random(size) < rate for size, rate in zip(sizes, (0.95, 0.7, 0.4), strict=True)]
    truth, hits = sum(map(np.sum, population)) / sum(sizes), 0
    codes = np.repeat(np.arange(3), (100, 60, 140))
    for _ in range(60):
        drawn = [rng.choice(own, n, replace=False) for own, n in zip(population, (100, 60, 140), strict=True)]
        found = drawn_rate(np.concatenate(drawn), np.ones(300), Strata(codes, np.array(sizes)))
        assert found.low is not None and found.high is not None
        hits += found.low <= truth <= found.high
    assert hits >= 53  # of 60, at 95% this or more has a probability of 99%


def test_a_run_tells_the_accuracy_on_the_traffic(lab: Lab) -> None:
    folder = lab.home.data / "suites" / "drawn"
    folder.mkdir(parents=True)
    folder.joinpath("suite.yaml").write_text(
        "{name: drawn, version: '1', track: text, cases: cases.jsonl, options: {answer: {form: text}}}"
    )
    sampled = [{"stratum": "a", "of": 10, "probability": 0.2}, {"stratum": "b", "of": 30, "probability": 2 / 30}]
    cases: list[dict[str, Any]] = [
        {"id": f"c{n}", "question": f"Q{n}?", "answer": f"A{n}", "sampled": sampled[n // 2]} for n in range(4)
    ]
    cases.append({"id": "unknown", "turns": [{"question": "Why?", "answer": None}]})
    folder.joinpath("cases.jsonl").write_text("".join(json.dumps(one) + "\n" for one in cases))
    lab.versions({"name": "oracle", "provider": "oracle"})
    said = lab.cli("run", "--suite", "drawn", "--model-version", "oracle")
    assert "traffic:" in str(said)
    assert lab.sql("SELECT metric, n, clusters, mean, method FROM statistics WHERE split = 'traffic'") == [
        ("correct", 4, 4, 1.0, "stratified")
    ]
    assert lab.sql("SELECT correct FROM turn_results WHERE case_id = 'unknown'") == [(None,)]
