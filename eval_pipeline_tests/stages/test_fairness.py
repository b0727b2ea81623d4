"""Both rates that `validate` tells of a suite: cheats that pass, and right answers that are refused."""

from collections.abc import Mapping
from functools import partial

import pytest
import yaml

from eval_pipeline.core.model import Case, Json, Ran, Turn
from eval_pipeline.stages.checks import suite_files
from eval_pipeline.stages.checks.suite_files import (
    MOST_TURNS,
    EvenDraw,
    cheats_of,
    is_the_same,
    look_through,
    measure,
)
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentGold
from eval_pipeline_plugins.tracks.agent.cases.settings import AnswerCheck
from eval_pipeline_plugins.tracks.agent.checking.answer import compare_answer
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.track import TRACK as AGENT
from eval_pipeline_plugins.tracks.text.cases.settings import TextOptions
from eval_pipeline_plugins.tracks.text.track import TRACK, TextTrack
from eval_pipeline_tests.support import SHIPPED, Lab

LABELS = {"Africa": [], "Asia": [], "Europe": [], "South America": []}


def cases_of(
    answer: dict[str, object], metrics: dict[str, object], golds: list[object]
) -> list[tuple[Case, frozenset[str]]]:
    options = TextOptions.model_validate({"answer": answer, "metrics": metrics})
    return [
        (
            TRACK.read_case(
                {"id": f"c{place}", "question": f"Which one is it in row {place}?", "answer": gold},
                "s",
                "f",
                1,
                options,
            ),
            frozenset(),
        )
        for place, gold in enumerate(golds)
    ]


def test_a_fair_suite_has_two_rates_of_zero() -> None:
    found = measure(TRACK, cases_of({"form": "label", "labels": LABELS}, {"choice": None}, list(LABELS)))
    assert not found.cheats.misjudged and not found.right.misjudged
    assert (found.cheats.tried, found.right.tried) == (4 * 8, 4 * 4)
    assert found.text() == "cheats passed: 0 of 32; right answers refused: 0 of 16"
    found.cheats.misjudged.append("s/c0#0: a question")
    assert "ask for more" in found.text() and "accept" not in found.text()
    found.right.misjudged.append("s/c0#0: in bold")
    assert "accept" in found.text()


def test_a_pattern_that_finds_too_much_lets_cheats_pass() -> None:
    cases = cases_of({"form": "text"}, {"regex": {"pattern": "(?s).*"}}, ["Africa", "Asia"])
    assert {one.split(": ")[1] for one in measure(TRACK, cases).cheats.misjudged} >= {"the question"}


def test_nothing_and_all_labels_are_given_too() -> None:
    case = cases_of({"form": "label", "labels": LABELS}, {"choice": None}, ["Asia"])[0][0]
    (turn,) = case.turns
    assert dict(cheats_of(turn, {turn.id: TRACK.oracle(turn)}))["no answer"] == ""
    assert TRACK.cheats(case, turn) == {"all options at once": "Answer: Africa, Asia, Europe, South America"}
    ((other, _),) = cases_of({"form": "text"}, {"exact": None}, ["Asia"])
    assert TRACK.cheats(other, other.turns[0]) == {}


DEAR = {"pandas_sample", "sql_changes_sample", "sql_sample"}
"""Suites whose gold takes seconds to score: of these every fourth case is looked at here, and all in `make soak`.

That all of their gold runs is shown by tests of the tracks.
"""


@pytest.mark.parametrize("most", [4, pytest.param(MOST_TURNS, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", sorted(path.name for path in (SHIPPED / "suites").iterdir()))
def test_the_shipped_suites_are_judged_fairly(name: str, most: int, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_files, "EvenDraw", partial(EvenDraw, most))
    source = SHIPPED / "suites" / name
    if name in DEAR and most < MOST_TURNS:
        cases = [case for path in sorted(source.glob("cases/*")) for case in yaml.safe_load(path.read_text())]
        lab.shipped(name, cases[::4])
    else:
        (lab.home.data / "suites" / name).symlink_to(source)
    workspace = lab.workspace()
    found = look_through(workspace, workspace.suite(name), SILENT)
    close_worlds()
    assert found.ends.passed and not found.broken  # the gold scores 1, no answer 0
    assert found.doubts == []  # it does not contradict itself
    for trials in (found.fairness.cheats, found.fairness.right):
        assert trials.tried >= min(most * 2, 30)
        assert len(trials.misjudged) <= trials.tried / 100, trials.text()


def test_rewrites_of_the_track_are_tried_and_told_by_name() -> None:
    class Strict(TextTrack):
        def rewrites(self, case: Case, turn: Turn) -> Mapping[str, str]:
            return {"in French": "Réponse : aucune", "in capitals": self.oracle(turn).upper()}

    found = measure(Strict(), cases_of({"form": "label", "labels": LABELS}, {"choice": None}, ["Asia", "Africa"]))
    assert found.right.misjudged == ["s/c0#0: in French", "s/c1#0: in French"]
    assert found.right.text() == "2 of 10 (s/c0#0: in French, s/c1#0: in French)"


def test_the_same_answer_as_another_turn_is_no_cheat() -> None:
    cases = cases_of({"form": "label", "labels": LABELS}, {"choice": None}, ["Asia", "Asia", "Africa"])
    found = measure(TRACK, cases)
    assert not found.cheats.misjudged
    turns = [case.turns[0] for case, _ in cases]
    answers = {turn.id: TRACK.oracle(turn) for turn in turns}
    assert dict(cheats_of(turns[0], answers))["another turn's answer"] == answers[turns[2].id]


@pytest.mark.parametrize(("cheat", "gold"), [("12", "12%"), (["c", "b"], ["b", "c"]), ([7], 7)])
def test_what_the_judge_of_agents_takes_for_the_gold_is_still_a_cheat(cheat: Json, gold: Json) -> None:
    def ran(answer: Json) -> Ran:
        return Ran({"answers": [answer], "end_state": {}})

    turn = Turn("s/c#0", 0, "Which?", AgentGold((), ((gold,),), False, (AnswerCheck(),), Contract()))
    assert compare_answer(cheat, [gold], turn.question, Contract()).right
    assert not is_the_same(AGENT, turn, ran(cheat), ran(gold)) and is_the_same(AGENT, turn, ran(gold), ran(gold))


def test_one_refusal_is_as_right_as_another() -> None:
    ((case, _), *_) = cases_of({"form": "text"}, {"exact": None}, ["one"])
    answers = {case.turns[0].id: "I refuse", "other": "No, I refuse", "third": "SELECT 1"}
    assert dict(cheats_of(case.turns[0], answers, {"I refuse", "No, I refuse"})) == {
        "the question": case.turns[0].question,
        "another turn's answer": "SELECT 1",
        "the answer of a turn far off": "SELECT 1",
    }


@pytest.mark.parametrize("number", [3, MOST_TURNS, 10 * MOST_TURNS])
def test_cases_are_drawn_evenly_and_always_the_same(number: int) -> None:
    cases = cases_of({"form": "text"}, {"exact": None}, ["one"] * number)
    drawn = []
    for _ in range(2):
        some = EvenDraw()
        for case, excluded in cases:
            some.pass_by(case, excluded)
        drawn.append([case.id for case, _ in some.cases()])
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == min(number, MOST_TURNS)
    assert number <= MOST_TURNS or len([one for one in drawn[0] if int(one[1:]) >= number // 2]) > MOST_TURNS // 4
