"""Signs that answers belong elsewhere: each is seen where it is made, and none in answers that are merely bad."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from eval_pipeline.core.system.days import today
from eval_pipeline.stages.checks import plausible
from eval_pipeline.stages.checks.plausible import AnsweredTurn, check_plausible, equal, number, suspicions
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_tests.outside import FINQA, needs
from eval_pipeline_tests.support import Lab

CONVERSATIONS, TURNS = 30, 4


def gold(conversation: int, turn: int) -> float:
    return 1000.0 + 101 * conversation + 17 * turn


def answered(answer: Callable[[int, int], float]) -> list[AnsweredTurn]:
    places = [(i, t, answer(i, t)) for i in range(CONVERSATIONS) for t in range(TURNS)]
    return [AnsweredTurn((f"c{i}", 0), t, f"{gold(i, t):g}", f"{said:g}", said == gold(i, t)) for i, t, said in places]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda i, t: 42.0, "120 of 120 answers are the same, whatever is asked"),
        (lambda i, t: 0.0 if i % 3 else gold(i, t), "80 of 80 wrong answers are one number: is that what is answered"),
        (lambda i, t: gold(i, t + 1), "right for the turn after"),
        (lambda i, t: gold(i, t - 1), "right for the turn before"),
        (lambda i, t: gold(i, (t + 2) % TURNS), "right for another turn of the conversation (0 would be by chance)"),
        (lambda i, t: gold(i, t) * 1e6, "120 of 120 wrong numbers are 1,000,000 times the right ones"),
        (lambda i, t: -gold(i, t), "120 of 120 wrong numbers are −1 times the right ones"),
        (lambda i, t: gold(i, t) if t == 0 else 3.5 * i + t, "100.0% of the first turns"),
        (lambda i, t: 3.5 * i + t, "none of 120 answers is right"),
    ],
)
def test_each_sign_is_seen(answer: Callable[[int, int], float], says: str) -> None:
    (sign,) = suspicions(answered(answer))
    assert says in sign


def test_nothing_is_said_of_good_answers_nor_of_few() -> None:
    assert suspicions(answered(gold)) == []
    assert suspicions(answered(lambda i, t: 42.0)[:19]) == []


@pytest.mark.parametrize(("right", "signs"), [(CONVERSATIONS // 2, 1), (CONVERSATIONS // 2 - 1, 0)])
def test_half_of_the_first_turns_are_enough_to_suspect_the_history(right: int, signs: int) -> None:
    found = suspicions(answered(lambda i, t: gold(i, t) if t == 0 and i < right else 3.5 * i + t))
    assert ["first turns of conversations" in sign for sign in found] == [True] * signs


@pytest.mark.parametrize("accuracy", [0.05, 0.3, 0.6, 0.9])
def test_nothing_is_said_of_a_model_that_is_wrong_in_its_own_ways(accuracy: float) -> None:
    """Wrong answers as models give them: noise, other signs, an earlier answer, powers of ten, each now and then."""
    for seed in range(50):
        rng = Random(seed)

        def answer(i: int, t: int, rng: Random = rng) -> float:
            if rng.random() < accuracy:
                return gold(i, t)
            noise = [gold(i, t) * rng.uniform(0.5, 2) for _ in range(2)]
            return rng.choice([*noise, -gold(i, t), gold(i, max(t - 1, 0)) + (t == 0), gold(i, t) * 100])

        given = {(i, t): answer(i, t) for i in range(CONVERSATIONS) for t in range(TURNS)}
        assert suspicions(answered(lambda i, t, given=given: given[i, t])) == []


@pytest.mark.parametrize("right", ["1", "yes"])
def test_one_wrong_answer_is_no_sign_where_the_right_ones_are_alike_or_others_are_wrong_too(right: str) -> None:
    wrong = {"1": "0", "yes": "no"}[right]
    alike = [AnsweredTurn((f"c{i}", 0), 0, right, wrong if i % 3 else right, i % 3 == 0) for i in range(60)]
    assert suspicions(alike) == []
    mixed = [AnsweredTurn((f"c{i}", 0), 0, "yes" if i % 2 else "no", "yes", bool(i % 2)) for i in range(60)]
    assert suspicions(mixed) == []
    assert suspicions(answered(lambda i, t: gold(i, t) if i % 2 else 0.0 if i % 6 == 0 else i + t / 7)) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("25%", "0.25", True),
        ("1,000", "1000", True),
        ("1000.4", "1000", True),
        ("1002", "1000", False),
        ("Yes ", "yes", True),
        ("yes", "no", False),
        ("yes", "1", False),
    ],
)
def test_equal(one: str, other: str, same: bool) -> None:
    assert equal(one, other) is same
    assert (number(one) is None) == (not any(char.isdigit() for char in one))


class Results:
    """Turns of an evaluation in groups of seven, as the record has them."""

    def __init__(self, turns: int) -> None:
        self.rows = pa.table(
            {
                "case_id": [f"c{turn // 3}" for turn in range(turns)],
                "sample": [0] * turns,
                "turn_index": list(range(turns)),
                "expected": ["1"] * turns,
                "answer": [None if turn == 1 else "2" for turn in range(turns)],
                "correct": [False] * turns,
                "simulated": [False] * turns,
            }
        )

    def header(self, table: object) -> SimpleNamespace:
        return SimpleNamespace(rows=self.rows.num_rows)

    def rows_within(self, table: object, columns: list[str]) -> Iterator[pa.Table]:
        yield from (self.rows.select(columns).slice(start, 7) for start in range(0, self.rows.num_rows, 7))


@pytest.mark.parametrize(
    ("turns", "looked_at"), [(20, range(20)), (40, [*range(5), *range(10, 15), *range(20, 25), *range(30, 35)])]
)
def test_of_many_turns_stretches_are_looked_at(
    turns: int, looked_at: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plausible, "MOST", 20)
    monkeypatch.setattr(plausible, "STRETCHES", 4)
    found = plausible.looked_at(cast("Inputs", Results(turns)))
    assert found is not None
    assert [one.turn_index for one in found.turns] == [turn for turn in looked_at if turn != 1]


def test_it_is_said_how_many_of_the_answers_were_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plausible, "MOST", 40)
    monkeypatch.setattr(plausible, "STRETCHES", 4)
    found = plausible.check_plausible(cast("Inputs", Results(100)))
    assert (
        "39 of 39 wrong numbers are 2 times the right ones: which units are answered? (39 of 99 answers were"
        in found.text
    )


def test_one_right_answer_among_those_not_looked_at_is_one() -> None:
    """Without it, none would be right, which is a sign of its own."""
    wrong = answered(lambda i, t: 3.5 * i + t)
    assert plausible.LookedAt(wrong, 1000, 1).signs() == []
    (sign,) = plausible.LookedAt(wrong, 1000, 0).signs()
    assert sign.startswith("none of 120 answers is right")
    assert sign.endswith("(120 of 1,000 answers were looked at)")


Rows = list[dict[str, Any]]
RUNS = ("predictions_claude-sonnet-4-6_run_a.jsonl", "predictions_claude-sonnet-4-6_run_b.jsonl")


def shifted(rows: Rows) -> Rows:
    """Each turn with the answer of the next one."""
    return [{**row, "answer": next_["answer"], "unit": next_["unit"]} for row, next_ in pairwise(rows)]


def thousandths(rows: Rows) -> Rows:
    return [{**row, "answer": str(float(row["answer"]) / 1000)} if _is_number(row) else row for row in rows]


def _is_number(row: dict[str, Any]) -> bool:
    return number(str(row["answer"])) is not None and not str(row["answer"]).endswith("%")


@needs(FINQA)
def test_real_answers_of_a_model_as_they_are_and_made_wrong(lab: Lab, tmp_path: Path) -> None:
    first, second = (
        [
            {key: row[key] for key in ("case_id", "turn_index", "answer", "unit")}
            for row in map(json.loads, (FINQA / name).read_text("utf-8").splitlines())
        ]
        for name in RUNS
    )
    assert lab.cli("import", "convfinqa", str(FINQA / "convfinqa_dev_sample.json"), "--suite", "conv").code == 0
    for version, answers, says in (
        ("first", first, ""),
        ("shifted", shifted(first), "are right for the turn after the one that they were given to"),
        ("thousandths", thousandths(second), "wrong numbers are 0.001 times the right ones"),
    ):
        file = tmp_path / f"{version}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in answers))
        assert lab.cli("import", "predictions", str(file), "--suite", "conv", "--model-version", version).code == 0
        lab.evaluate("conv", version, day=today(), upto="turn_metrics")
        verdict = check_plausible(lab.inputs("conv", version, day=today()))
        assert verdict.passed is (not says)
        assert says in verdict.text
