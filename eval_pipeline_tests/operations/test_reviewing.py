"""Reviews from the command line: into files, into the store, and back into the gold."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.analysis.reviews.figures import estimated_rows
from eval_pipeline.analysis.reviews.making import Reviewed, reviewed_answers, reviewed_of
from eval_pipeline.operations.reviews.reviewing import (
    ReviewStatement,
    answer_on_record,
    disputed,
    draw_queue,
    known_tags,
    progress_of,
    review_answer,
)
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.suites.reviews.test_review_files import review
from eval_pipeline_tests.support import Lab, Puppet, number

SAID = {"alpha#0": 50, "alpha#1": 58, "beta#0": 0.84}


COMPARED = ("model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published")


@pytest.fixture
def evaluated(small: Lab, module_folder: Path) -> Lab:
    """An evaluation of `small`, compared and published: right, wrong (58 for 57), right."""

    def make(lab: Lab) -> None:
        Puppet.answer = staticmethod(lambda call: number(SAID[f"{call.case_id}#{call.turn_index}"]))
        lab.evaluate(publish=True)
        ran_of_suite(lab.workspace(), "small", *COMPARED)

    made = small.made_once(module_folder / "reviewed", make)
    Puppet.reset()
    return made


def add(lab: Lab, turn: str, verdict: str, *more: str, who: str = "ann") -> Any:
    return lab.cli(
        "reviews", "add", "--suite", "small", "--model-version", "puppet", "--turn", turn, "--verdict", verdict,
        "--who", who, *more,
    )  # fmt: skip


def figures(lab: Lab, *, of_queue: bool = False) -> dict[tuple[str, str | None], tuple[int, float | None]]:
    """Number of reviews and value, of so few that the store has the number only."""
    assert lab.one("SELECT count(value) FROM review_statistics") == 0
    inputs = Inputs(lab.workspace(), "small")
    found = reviewed_of(inputs)
    rows = estimated_rows(found.reviews, found.queues, reviewed_answers(inputs, found))
    return {(row["figure"], row["label"]): (row["n"], row["value"]) for row in rows if bool(row["queue"]) == of_queue}


def test_what_people_say_is_in_the_store_beside_what_metrics_say(evaluated: Lab) -> None:
    assert add(evaluated, "alpha#0", "right").code == 0
    assert add(evaluated, "small/alpha#1", "right", "--tag", "wrong unit", "--note", "<script>'\"\x1b[31m").code == 0
    assert add(evaluated, "beta#0", "cannot_tell").code == 0
    said = evaluated.cli("reviews")
    assert said.code == 0, said.text
    assert said.out.startswith("small: 3 reviews of 3 answers, reviewers: 1, disputed: 0\n")
    rows = evaluated.sql(
        "SELECT turn_id, verdict, metric_correct, seen_response, is_current, tag, note FROM reviews ORDER BY turn_id"
    )
    assert rows == [
        ("small/alpha#0", "right", True, True, True, None, ""),
        ("small/alpha#1", "right", False, True, True, "wrong unit", "<script>'\"\x1b[31m"),
        ("small/beta#0", "cannot_tell", True, True, True, None, ""),
    ]
    found = figures(evaluated)
    assert found["accuracy", None] == (2, 1.0)
    assert found["metric_accuracy", None] == (2, 0.5)
    assert found["metric_true_positive_rate", None] == (2, 0.5)
    assert found["metric_true_negative_rate", None] == (0, None)
    assert found["cannot_tell", None] == (3, pytest.approx(1 / 3))
    assert found["failure_tag", "wrong unit"] == (3, pytest.approx(1 / 3))
    assert evaluated.one("SELECT count(*) FROM current_reviews") == 3


def test_a_second_word_replaces_the_first_and_lines_that_are_no_reviews_are_told(evaluated: Lab) -> None:
    add(evaluated, "alpha#0", "right")
    add(evaluated, "alpha#0", "wrong")
    (file,) = (evaluated.home.data / "suites/small/reviews").glob("*.jsonl")
    file.write_text(file.read_text() + "no review\n")
    said = evaluated.cli("reviews")
    assert "small/reviews/ann.jsonl:3: not a JSON object" in said.err
    assert said.out.startswith("small: 1 review of 1 answer")
    rows = evaluated.sql("SELECT verdict, is_current, supersedes IS NULL FROM reviews ORDER BY said_at")
    assert rows == [("right", False, True), ("wrong", True, False)]


def test_a_review_says_nothing_of_another_response(evaluated: Lab, puppet: type[Puppet]) -> None:
    add(evaluated, "alpha#0", "wrong")
    add(evaluated, "alpha#1", "wrong")
    puppet.answer = staticmethod(lambda call: number(51 if call.turn_index == 0 else 58))
    evaluated.evaluate(epoch="again", publish=True)
    evaluated.cli("reviews")
    rows = evaluated.sql("SELECT turn_id, seen_response, metric_correct FROM reviews ORDER BY turn_id")
    assert rows == [("small/alpha#0", False, None), ("small/alpha#1", True, False)]
    assert figures(evaluated)["metric_accuracy", None] == (1, 1.0)


def test_two_people_agree_or_are_listed(evaluated: Lab) -> None:
    for turn, one, other in (
        ("alpha#0", "right", "right"),
        ("alpha#1", "wrong", "right"),
        ("beta#0", "wrong", "wrong"),
    ):
        add(evaluated, turn, one)
        add(evaluated, turn, other, who="bo")
    assert evaluated.cli("reviews", "disputes").out == "small/alpha#1 · puppet · ann: wrong, bo: right\n"
    evaluated.cli("reviews")
    rows = [(*key, *row) for key, row in figures(evaluated).items() if key[0].startswith("reviewers")]
    # two of three alike; by chance (1·2 + 2·1)/9: (2/3 - 4/9) / (5/9)
    assert sorted(rows) == [
        ("reviewers_agreement", "ann and bo", 3, pytest.approx(2 / 3)),
        ("reviewers_kappa", "ann and bo", 3, pytest.approx(0.4)),
    ]
    said = evaluated.cli("reviews").out
    assert re.search("no figure of accuracy, .*, reviewers agreement, .*: fewer than 12 reviews bear no figure", said)
    assert "%" not in said
    assert figures(evaluated)["disputed", None] == (3, pytest.approx(1 / 3))


def test_a_queue_is_drawn_once_and_its_figures_stand_for_all(evaluated: Lab) -> None:
    arguments = ("reviews", "queue", "--suite", "small", "--size", "2", "--by", "uniform", "--seed", "3")
    first, again = evaluated.cli(*arguments), evaluated.cli(*arguments)
    assert first.out == again.out
    queue = first.out.split()[2].rstrip(",")
    assert first.out == (
        f"small: queue {queue}, 2 answers drawn by uniform, seed 3\n  all{' ' * 30}2 of 3\n"
        "Review them with `eval-pipeline view`, at /suites/small/reviews\n"
    )
    (file,) = (evaluated.home.data / "suites/small/reviews/queues").iterdir()
    items = json.loads(file.read_text())["items"]
    for item in items:
        assert add(evaluated, item["turn_id"], "right", "--queue", queue).code == 0
    (other,) = {"alpha#0", "alpha#1", "beta#0"} - {item["turn_id"].partition("/")[2] for item in items}
    said = add(evaluated, other, "right", "--queue", queue)
    assert (said.code, "has not drawn this answer" in said.err) == (2, True)
    assert "2 of 2 reviewed" in evaluated.cli("reviews").out
    (row,) = evaluated.sql(
        "SELECT n, population FROM review_statistics WHERE queue IS NOT NULL AND figure = 'accuracy'"
    )
    assert row == (2, 3.0)
    assert figures(evaluated, of_queue=True)["accuracy", None] == (2, 1.0)


@pytest.mark.always
def test_who_came_by_an_answer_has_not_reviewed_it_from_the_queue(evaluated: Lab) -> None:
    inputs = Inputs(evaluated.workspace(), "small")
    queue = draw_queue(inputs, None, "uniform", 3, 0)
    place = inputs.anew(partition=evaluated.inputs().partition)
    item = answer_on_record(place, "alpha#1", 0)
    review_answer(inputs, item, ReviewStatement("ann", "wrong"))
    (progress,) = progress_of(reviewed_of(inputs))
    assert progress.reviewed == {}
    for drawn in queue.items:
        review_answer(inputs, drawn, ReviewStatement("ann", "right", queue=queue.id))
    # Said again elsewhere: the queue had asked for it all the same.
    review_answer(inputs, item, ReviewStatement("ann", "wrong"))
    (progress,) = progress_of(reviewed_of(inputs))
    assert len(progress.reviewed) == 3
    said = evaluated.cli("reviews").out
    assert "  puppet: accuracy as reviewers would say, 66.7% [66.7% to 66.7%], from 3 reviews\n" in said
    told = evaluated.cli("reviews", "queue", "--suite", "small", "--size", "3", "--by", "narrowest").out
    assert re.search(r"metrics disagree, metric says right +1 of 1\n", told)


def test_reviews_propose_overrides_and_only_those_change_figures(evaluated: Lab, puppet: type[Puppet]) -> None:
    correction = ("--gold-wrong", "--correction", '{"program": "58", "answer": 58}')
    add(evaluated, "alpha#1", "right", *correction, "--note", 'the table: has 58, "not" 57\n- x')
    add(evaluated, "beta#0", "cannot_tell", "--gold-wrong")
    said = evaluated.cli("reviews", "propose", "--suite", "small")
    entries = yaml.safe_load(said.out)
    assert [(entry["turn"], entry["action"], entry.get("gold")) for entry in entries] == [
        ("small/alpha#1", "corrected", {"program": "58", "answer": 58}),
        ("small/beta#0", "excluded", None),
    ]
    assert entries[0]["why"] == 'the table: has 58, "not" 57\n- x'
    override(evaluated, {"turn": "alpha#0", "action": "excluded"})
    before = (evaluated.home.data / "suites/small/gold_overrides.yaml").read_text()
    asked = len(puppet.asked)
    said = evaluated.cli("reviews", "propose", "--suite", "small", "--write")
    assert said.code == 0, said.text
    assert (evaluated.home.data / "suites/small/gold_overrides.yaml").read_text().startswith(before)
    evaluated.evaluate(publish=True)
    assert len(puppet.asked) == asked
    assert evaluated.sql("SELECT turn_id, correct FROM turn_results") == [("small/alpha#1", True)]
    again = evaluated.cli("reviews", "propose", "--suite", "small")
    assert again.out == ""
    assert "small/alpha#1: not proposed: gold_overrides.yaml has decided on it" in again.err


def test_two_corrections_and_a_gold_that_has_changed_since_propose_none(evaluated: Lab) -> None:
    add(evaluated, "alpha#1", "right", "--gold-wrong", "--correction", '{"answer": 58}')
    add(evaluated, "alpha#1", "right", "--gold-wrong", "--correction", '{"answer": 59}', who="bo")
    said = evaluated.cli("reviews", "propose", "--suite", "small")
    assert "small/alpha#1: not proposed: 2 different corrections; agree on one first" in said.err
    path = evaluated.home.data / "suites/small/cases/alpha.yaml"
    path.write_text(path.read_text().replace("add(50, 7)", "add(50, 8)").replace("57.0", "58.0"))
    said = evaluated.cli("reviews", "propose", "--suite", "small")
    assert "small/alpha#1: not proposed: the gold has changed since it was reviewed" in said.err


def test_a_proposal_that_cannot_be_gold_is_refused(evaluated: Lab) -> None:
    add(evaluated, "alpha#1", "right", "--gold-wrong", "--correction", '{"program": "add("}')
    said = evaluated.cli("reviews", "propose", "--suite", "small", "--write")
    assert said.code == 2
    assert "a proposal cannot be added; add it by hand: small/gold_overrides.yaml:" in said.err
    assert not (evaluated.home.data / "suites/small/gold_overrides.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("alpha#7", "right"), "no answer of puppet of 2026-03-01 to 'small/alpha#7', sample 0"),
        (("alpha#0", "maybe"), "verdict: expected 'right', 'wrong' or 'cannot_tell', found 'maybe'"),
        (("alpha#0", "right", "--correction", "{}"), "correction: unknown field ''; the gold has program, answer"),
        (("alpha#0", "right", "--gold-wrong", "--correction", '{"x": 1}'), "correction: unknown field 'x'"),
        (("alpha#0", "right", "--gold-wrong", "--correction", "[1"), "--correction is no JSON"),
        (("alpha#0", "right", "--queue", "123456789abc"), "no queue '123456789abc' beside the suite; known: none"),
        (("alpha#0", "right", "--tag", "x" * 61), "tag: expected a text of at most 60 characters"),
    ],
)
def test_what_cannot_be_said_is_a_sentence(evaluated: Lab, arguments: tuple[str, ...], told: str) -> None:
    said = add(evaluated, *arguments)
    assert said.code == 2
    assert told in said.err
    assert not (evaluated.home.data / "suites/small/reviews").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--by", "chance"), "unknown way to draw 'chance'; one of: uniform, disagreement, narrowest"),
        (("--model-version", "other"), "'other' has no evaluation of 'small'; those that have: puppet"),
        (("--size", "1"), "1 are too few for 3 kinds of answers; expected at least 3"),
    ],
)
def test_a_queue_that_cannot_be_drawn_is_a_sentence(evaluated: Lab, arguments: tuple[str, ...], told: str) -> None:
    said = evaluated.cli("reviews", "queue", "--suite", "small", *arguments)
    assert (said.code, told in said.err) == (2, True), said.err


def test_tags_in_use_come_first() -> None:
    said = [review(0, tag="zebra"), review(1, tag="zebra"), review(2, tag="made up")]
    assert known_tags(Reviewed(said, {}, ()))[:3] == ["zebra", "made up", "misread question"]
    assert disputed(Reviewed(said, {}, ())) == []


def test_answers_called_right_become_the_gold_where_it_is_not_known(lab: Lab) -> None:
    folder = lab.home.data / "suites" / "asked"
    folder.mkdir(parents=True)
    folder.joinpath("suite.yaml").write_text(
        "{name: asked, version: '1', track: text, cases: cases.jsonl, options: {answer: {form: text}}}"
    )
    turns: list[Any] = [{"question": "Why?", "answer": None}, {"question": "How?", "answer": None}]
    cases: list[Any] = [
        {"id": "a", "turns": turns},
        {"id": "b", "turns": turns},
        {"id": "c", "question": "Q?", "answer": "Yes"},
    ]
    folder.joinpath("cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    places = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
    answers = {"one": ["So", "So", "So", "So", "No"], "two": ["so.", "Thus", "Never", "So", "Yes"]}
    for version, given in answers.items():
        rows = [
            {"case_id": case, "turn_index": turn, "response": f"Answer: {one}"}
            for (case, turn), one in zip(places, given, strict=True)
        ]
        file = folder.parent.parent / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        options = ("--suite", "asked", "--model-version", version)
        assert lab.cli("import", "predictions", str(file), *options).code == 0
        lab.evaluate("asked", version, publish=True)

    def said_of(version: str, turn: str, verdict: str, who: str) -> None:
        options = ("--suite", "asked", "--model-version", version, "--turn", turn, "--verdict", verdict, "--who", who)
        assert lab.cli("reviews", "add", *options).code == 0

    for version in answers:
        for turn in ("a#0", "a#1", "c#0"):
            said_of(version, turn, "right", "ann")
    for verdict, who in (("right", "ann"), ("wrong", "bo")):
        said_of("one", "b#0", verdict, who)  # a tie
    said_of("one", "b#1", "wrong", "ann")
    said = lab.cli("reviews", "propose", "--suite", "asked", "--write")
    assert said.code == 0, said.text
    entries = yaml.safe_load((folder / "gold_overrides.yaml").read_text())
    assert [(entry["turn"], entry["action"], entry["who"], entry["gold"]) for entry in entries] == [
        ("asked/a#0", "corrected", "ann", {"answer": "So", "accept": ["so."]}),
        ("asked/a#1", "corrected", "ann", {"answer": "So", "accept": ["Thus"]}),
    ]
    for version in answers:
        lab.evaluate("asked", version, publish=True)
    found = lab.sql("SELECT model_version, turn_id, correct FROM turn_results WHERE case_id = 'a' ORDER BY ALL")
    assert found == [(version, f"asked/a#{turn}", True) for version in answers for turn in (0, 1)]
