"""Whether a judge may be believed: its rates against the evidence, itself asked again, and its family."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from eval_pipeline.asking.budgets import Budget
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge import DEFAULT_JUDGE, Judgement, JudgePrompt
from eval_pipeline.stages import judge_repeats, judging
from eval_pipeline.stages.checks.judges import check_judge_family
from eval_pipeline_tests.support import Lab, Puppet, command
from eval_pipeline_tests.tracks.sql.helpers import OSLO, answer, shop_lab

WRONG = "SELECT name FROM customers"
OTHER_WORDS = "SELECT c.name FROM customers AS c WHERE c.city = 'Oslo'"
CHOICES = {1.0: "same", 0.5: "partly", 0.0: "different"}


class Wavering:
    """A judge that says of each query what comes next in its list, again and again."""

    def __init__(self, opinions: dict[str, list[float | None]], model: str) -> None:
        self.opinions, self.model, self.asked = opinions, model, list[str]()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        found = self.opinions[generated]
        value = found[self.asked.count(generated) % len(found)]
        self.asked.append(generated)
        if value is None:
            return Judgement(0.0, error="LLM judge timeout", model=self.model)
        return Judgement(value, CHOICES[value], "so it seems", model=self.model, usage=Usage(50, 7))

    async def __aenter__(self) -> "Wavering":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


@pytest.fixture
def judged(lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Wavering]:
    def evaluate(
        answers: dict[str, str], opinions: dict[str, list[float | None]], judge: str = "fake/judge", **version: Any
    ) -> Wavering:
        found = Wavering(opinions, judge)
        for module in (judging, judge_repeats):
            monkeypatch.setattr(module, "open_judge", lambda *_, **__: found)
            monkeypatch.setattr(module, "why_no_judge", lambda version: "")
        shop_lab(lab, *({**OSLO, "id": name} for name in answers))
        lab.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": 0, **version})
        Puppet.answer = staticmethod(lambda call: answer(answers[call.case_id]))
        lab.evaluate("shop", publish=True)
        return found

    return evaluate


def test_rates_of_the_judge_with_the_base_rate(lab: Lab, judged: Callable[..., Wavering]) -> None:
    """Three pairs differ, one is the same: the judge says `same` of the one and of one of the three."""
    wrong = {name: f"{WRONG} WHERE id > {count}" for count, name in enumerate("abc")}
    judged(wrong | {"d": OTHER_WORDS}, {wrong["a"]: [1.0], wrong["b"]: [0.0], wrong["c"]: [0.5], OTHER_WORDS: [1.0]})
    ((positive, negative, base, low, high),) = lab.sql(
        "SELECT true_positive_rate, true_negative_rate, base_rate, true_negative_rate_low, true_negative_rate_high "
        "FROM judge_agreement"
    )
    assert (positive, negative, base) == (1.0, pytest.approx(2 / 3), 0.25)
    assert 0 < low < 2 / 3 < high < 1


class Stopping(Wavering):
    """Its first question fails, while the second is on its way; a third would be asked next."""

    ended = ""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.both, self.failed = asyncio.Event(), asyncio.Event()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        self.asked.append(generated)
        if len(self.asked) == 1:
            await self.both.wait()
            self.failed.set()
            raise StoreError("the disk is full")
        self.both.set()
        await self.failed.wait()
        for _ in range(100):  # who did not wait for it would be gone by now
            await asyncio.sleep(0)
        self.ended = generated
        return Judgement(1.0, CHOICES[1.0], "so it seems", model=self.model)


def test_a_run_that_ends_waits_for_the_judge_which_is_paid_for(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Stopping({}, "fake/judge")
    monkeypatch.setattr(judging, "open_judge", lambda *_, **__: found)
    monkeypatch.setattr(judging, "why_no_judge", lambda version: "")
    monkeypatch.setattr(judging, "_WORKERS", 2)
    shop_lab(lab, *({**OSLO, "id": name} for name in "abc"))
    lab.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": 0})
    Puppet.answer = staticmethod(lambda call: answer(f"{WRONG} WHERE id > {'abc'.index(call.case_id)}"))
    with pytest.raises(StoreError, match="the disk is full"):
        lab.evaluate("shop")
    assert len(found.asked) == 2
    assert found.ended == found.asked[1]


def test_where_nothing_is_the_same_there_is_no_true_positive_rate(lab: Lab, judged: Callable[..., Wavering]) -> None:
    judged({"a": WRONG}, {WRONG: [0.0]})
    assert lab.sql("SELECT n, true_positive_rate, true_negative_rate, base_rate FROM judge_agreement") == [
        (1, None, 1.0, 0.0)
    ]


def test_the_judge_is_asked_again_and_contradicts_itself(lab: Lab, judged: Callable[..., Wavering]) -> None:
    judge = judged({"a": WRONG, "b": OTHER_WORDS, "c": WRONG}, {WRONG: [0.0, 1.0, 0.0], OTHER_WORDS: [1.0]})
    asked = len(judge.asked)
    judge.asked.clear()
    said = command("rejudge", "--suite", "shop", "--model-version", "puppet", "--repeats", "3")
    assert said.code == 0, said.text
    assert asked > 0
    assert len(judge.asked) == 3 * 2, "equal pairs are asked about once a time, and the cache is left alone"
    assert "fake/judge, asked 3 times" in said.out
    assert "pairs          2, 1 of them with one answer every time" in said.out
    assert "self-agreement 0.667" in said.out, "(1/3 + 1) / 2"
    rows = lab.sql("SELECT case_id, repeat, choice FROM judge_repeats ORDER BY ALL")
    assert [row[1:] for row in rows if row[0] == "b"] == [(0, "same"), (1, "same"), (2, "same")]
    assert [row[2] for row in rows if row[0] != "b"] == ["different", "same", "different"]


def test_answers_that_do_not_come_are_told_and_not_counted(lab: Lab, judged: Callable[..., Wavering]) -> None:
    judge = judged({"a": WRONG, "b": OTHER_WORDS}, {WRONG: [0.0, None], OTHER_WORDS: [1.0]})
    judge.asked.clear()
    said = command("rejudge", "--suite", "shop", "--model-version", "puppet", "--repeats", "2")
    assert "pairs          1, 1 of them" in said.out
    assert "1 answers did not come" in said.err


def test_what_is_asked_again_stays_within_the_budget_of_the_judge(
    lab: Lab, judged: Callable[..., Wavering], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged({"a": WRONG}, {WRONG: [0.0]})
    given: list[Budget] = []

    def opened(version: ModelVersion, cache: None, *, prompt: JudgePrompt, budget: Budget) -> Wavering:
        given.append(budget)
        budget.reached = len(given) > 1
        return Wavering({WRONG: [None] if budget.reached else [0.0]}, "fake/judge")

    monkeypatch.setattr(judge_repeats, "open_judge", opened)
    limited = DEFAULT_JUDGE.model_copy(update={"max_cost_usd": 0.5})
    monkeypatch.setattr(judge_repeats, "judge_version", lambda workspace, suite: limited)
    said = command("rejudge", "--suite", "shop", "--model-version", "puppet", "--repeats", "3")
    assert (said.code, "the budget of the judge is reached" in said.err) == (1, True), said.text
    assert len({id(budget) for budget in given}) == 1, "all rounds share one"
    assert given[0].limited


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ({"model": "claude-haiku-4-5"}, "both of the family Claude"),
        ({"model": "gpt-4o"}, ""),
        ({"model": "our-gateway"}, ""),
    ],
)
def test_a_judge_of_the_same_family_is_told(
    lab: Lab, judged: Callable[..., Wavering], version: dict[str, str], told: str
) -> None:
    judged({"a": WRONG}, {WRONG: [0.0]}, judge="anthropic/claude-sonnet-5-5", **version)
    found = check_judge_family(lab.inputs("shop"))
    assert (found.passed, told in found.text) == (not told, True)
    said = command("run", "--suite", "shop", "--model-version", "puppet", "--eval-date", "2026-03-01", "--no-report")
    assert (told in said.err) and (("judges favour their own kind" in said.err) == bool(told)), said.text


def test_without_a_judge_nothing_is_asked_again(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet"})
    lab.evaluate(publish=True)
    said = command("rejudge", "--suite", "small", "--model-version", "puppet")
    assert (said.code, "has no judge to be asked: its track has none" in said.err) == (2, True), said.text
