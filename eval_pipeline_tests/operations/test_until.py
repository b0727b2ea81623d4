"""`run --until`: turns asked in batches drawn by known probabilities, from the first question to the report."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pytest

import eval_pipeline as ep
from eval_pipeline.analysis.baseline import baseline_verdict
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Json, Partition, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.operations.runs.evaluations import evaluation_of
from eval_pipeline.operations.runs.ranking import rank
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call, Environment, FatalCallError
from eval_pipeline.view.comparing.paired import untested
from eval_pipeline.workspace.asked.draws import Design, read_design
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_plugins.exports.inspect import inspect_log
from eval_pipeline_tests.support import DAY, Answer, Lab, Puppet, case, number, response

CASES, TURNS = 90, 120
PRICE = {"input": 0, "output": 1000}
RULE = "±5pp"
EARLIER = ("first", "second", "third")
RUN = ("run", "--suite", "small", "--model-version", "puppet", "--eval-date", DAY.isoformat())


def right(name: str, ability: float, case_id: str, turn: int) -> bool:
    """Whether a made-up model is right: cases are easy or hard for all of them."""
    easiness = 2.5 if int(case_id[1:]) % 4 else -1.5
    chance = crc32(f"{name} {case_id} {turn}".encode()) / 2**32
    return chance < 1 / (1 + 2.718 ** -(easiness + ability))


def answers(name: str, ability: float) -> None:
    """Makes the puppet answer as this model would."""

    def answer(call: Call) -> str:
        return call.gold.oracle() if right(name, ability, call.case_id, call.turn_index) else number(-1)

    Puppet.answer = staticmethod(answer)


def share(name: str, ability: float) -> float:
    """The share of turns that the model gets right in the whole suite."""
    turns = [(f"c{place:03}", turn) for place in range(CASES) for turn in range(2 if place % 3 == 0 else 1)]
    assert len(turns) == TURNS
    return sum(right(name, ability, *turn) for turn in turns) / TURNS


@pytest.fixture
def drawn(lab: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    """A suite that three model versions have answered in full; the last of them is the best."""
    made = lab.made_once(module_folder / "drawn", evaluate_earlier)
    puppet.reset()
    return made


def evaluate_earlier(lab: Lab) -> None:
    turns = (("50", 50.0), ("add(50, 7)", 57.0))
    lab.suite(cases=[case(f"c{place:03}", *turns[: 2 if place % 3 == 0 else 1]) for place in range(CASES)])
    named = (*EARLIER, "puppet", "weak")
    lab.versions(*({"name": name, "provider": "puppet", "price": PRICE, "max_tokens": 20} for name in named))
    for place, name in enumerate(EARLIER):
        answers(name, 0.5 * place)
        lab.evaluate(version=name, epoch=name)  # the puppet's answers are in one journal for all of them


def design(lab: Lab, version: str = "puppet") -> Design:
    found = read_design(lab.workspace().record, Partition("small", version, DAY))
    assert found is not None
    return found


def test_a_draw_until_a_width_from_the_first_question_to_the_whole_suite(drawn: Lab, puppet: type[Puppet]) -> None:
    answers("puppet", 0.3)
    said = drawn.cli("plan", *RUN[1:], "--until", RULE)
    assert f"until     {RULE}: chosen by 3 earlier evaluations" in said.out, said.text
    assert not puppet.asked

    # It is cut off within a batch, and goes on with the same draw: nothing is asked twice.
    answered: list[str] = []
    whole = puppet.answer

    def cut_off(call: Call) -> Answer:
        if len(answered) > 15:
            return FatalCallError("no credit")
        answered.append(f"{call.case_id}#{call.turn_index}")
        return whole(call)

    puppet.answer = staticmethod(cut_off)
    said = drawn.cli(*RUN, "--until", RULE, "--no-report")
    assert (said.code, "no credit" in said.err) == (1, True), said.text
    before = design(drawn)
    puppet.reset()
    answers("puppet", 0.3)
    said = drawn.cli(*RUN, "--until", "+-5pp", "--fail-below", "correct=0.99")
    assert said.code == 1, said.text
    after = design(drawn)
    assert after.batches[: len(before.batches)] == before.batches
    asked = puppet.turns_asked()
    assert sorted({*asked, *answered}) == sorted([*asked, *answered])
    assert len(asked) + len(answered) < TURNS

    # What is known of the whole suite, and that it is marked everywhere.
    ((value, low, high, turns, stopped),) = drawn.sql(
        "SELECT value, low, high, turns, stopped FROM sampled_estimates WHERE stopped IS NOT NULL"
    )
    assert (turns, high - low <= 0.1, low <= share("puppet", 0.3) <= high) == (len(asked) + len(answered), True, True)
    assert stopped.endswith("at most ±5pp")
    assert f"correct is {shown.rate(value)}, the gate is 99%" in said.err
    assert f"     {turns}       –        –  cases left out, drawn" in said.out
    assert "drawn:    puppet: " in said.out
    marked = [
        f"SELECT model_version FROM {name}"
        for name in ("leaderboard_details WHERE sampled", "leaderboard('small') WHERE scope = 'drawn'")
    ]
    assert [drawn.sql(query) for query in marked] == [[("puppet",)]] * 2
    board = drawn.sql("SELECT scope, accuracy, low, high FROM leaderboard_details WHERE model_version = 'puppet'")
    assert board == [(f'{{"batches":{len(after.batches)},"until":"{RULE}"}}', value, low, high)]
    of = "model_version = 'puppet' AND split = 'all' AND metric <> 'correct'"
    others = drawn.sql(
        f"SELECT DISTINCT mean IS NULL, reason LIKE '%unequal probabilities%' FROM statistics WHERE {of}"
    )
    assert others == [(True, True)]
    assert drawn.one("SELECT count(*) FROM statistics WHERE model_version = 'puppet' AND split <> 'all'") == 0
    assert drawn.one("SELECT count(*) FROM trends WHERE model_version = 'puppet'") == 0
    assert drawn.one("SELECT count(*) FROM model_comparisons WHERE 'puppet' IN (model_a, model_b)") == 0
    assert drawn.one("SELECT usd_total FROM cost_per_correct_answer WHERE model_version = 'puppet'") == pytest.approx(
        0.01 * turns
    )
    chances = drawn.sql(
        "SELECT batch IS NULL, probability > 0 AND probability <= 1, count(*) FROM sampling_design GROUP BY ALL"
    )
    assert {(row[0], row[1]) for row in chances} == {(True, None), (False, True)}
    page = (drawn.home.reports / "small" / "puppet" / DAY.isoformat() / "report.html").read_text()
    assert "PART OF THE SUITE ONLY: " in page
    assert "as from a uniform draw of" in page
    told = json.loads((drawn.home.reports / "small" / "puppet" / DAY.isoformat() / "statistics.json").read_text())
    assert told["sampled_estimates"][-1]["value"] == value

    # The same again asks nothing, another rule is refused, and the whole suite asks only the rest.
    puppet.reset()
    assert drawn.cli(*RUN, "--until", RULE, "--no-report").code == 0
    assert "give the same rule to continue" in drawn.cli(*RUN, "--until", "±1pp").err
    assert not puppet.asked
    answers("puppet", 0.3)
    assert drawn.cli(*RUN, "--no-report").code == 0
    assert sorted([*puppet.turns_asked(), *asked, *answered]) == sorted({*puppet.turns_asked(), *asked, *answered})
    assert len(puppet.asked) + len(asked) + len(answered) == TURNS
    whole = "SELECT scope, sampled, accuracy FROM leaderboard_details WHERE model_version = 'puppet'"
    assert drawn.sql(whole) == [("full", False, pytest.approx(share("puppet", 0.3)))]


def test_a_decision_and_a_budget(drawn: Lab, puppet: type[Puppet]) -> None:
    """`weak` is far worse than `third`; a budget is never exceeded."""
    answers("weak", -2.5)
    found = ep.run("small", "weak", eval_date=DAY, until="decided-against third")
    assert found.ok, found.problems
    ((difference, verdict, turns),) = drawn.sql(
        "SELECT value, verdict, turns FROM sampled_estimates WHERE metric = 'difference' AND stopped IS NOT NULL"
    )
    assert (verdict, turns < TURNS, turns == len(puppet.asked)) == ("worse", True, True)
    assert found.rows[0]["accuracy"] == pytest.approx(share("third", 1.0) + difference)
    # What takes the turns for a fair sample refuses, and says why; what hands them on says that they are drawn.
    sides = [Partition("small", name, DAY) for name in ("third", "weak")]
    assert untested(drawn.workspace(), *sides).startswith(f"only drawn cases were asked of weak on {DAY}, ")
    refused = baseline_verdict(drawn.workspace(), sides[0], "weak")
    assert refused == "small, third: of the baseline weak, only drawn cases of this suite were asked; run it in full"
    if find_spec("inspect_ai"):
        exported = inspect_log(evaluation_of(drawn.workspace(), "small", "weak", DAY)).eval.metadata or {}
        assert f"{turns} of {TURNS} turns asked" in exported["drawn"]
    # A night on a diet: `third` has become worse than in its own last full evaluation.
    puppet.reset()
    answers("third", -2.5)
    night = ("--eval-date", "2026-03-02", "--until", "decided-against third within 60%", "--fresh", "--no-report")
    said = drawn.cli("run", "--suite", "small", "--model-version", "third", *night, "--baseline", "third")
    assert (said.code, "worse than third, by" in said.err, len(puppet.asked) < 0.7 * TURNS) == (1, True, True), (
        said.text
    )
    assert "third on 2026-03-02: −" in said.err
    assert "against the full evaluation of 2026-03-01, estimated from a part of the suite" in said.err
    puppet.reset()
    answers("puppet", 0.3)
    assert ep.run("small", "puppet", eval_date=DAY, until="budget $0.5", fresh=True).ok
    spent = drawn.one("SELECT max(usd) FROM sampled_estimates WHERE until = 'budget 0.5usd'")
    assert spent == pytest.approx(0.01 * len(puppet.asked))
    assert 0.45 <= spent <= 0.5


@pytest.mark.always
def test_the_gate_goes_by_all_looks_if_every_case_was_asked(drawn: Lab, puppet: type[Puppet]) -> None:
    """Six of 120 turns broken: worse for a comparison that never looked before (p = 2 / 2^6), not after six looks."""
    cases = [f"c{place:03}" for place in range(CASES) if place % 3]
    broken = [name for name in cases if right("third", 1.0, name, 0)][:6]

    def answer(call: Call) -> str:
        told = call.case_id not in broken and right("third", 1.0, call.case_id, call.turn_index)
        return call.gold.oracle() if told else number(-1)

    puppet.answer = staticmethod(answer)
    said = drawn.cli(*RUN, "--until", "decided-against third", "--baseline", "third", "--no-report")
    assert said.code == 0, said.text
    assert "small, puppet: every case was asked: undecided against third" in said.err
    ((p_value, verdict),) = drawn.sql(
        "SELECT p_exact, conservative_verdict FROM model_comparisons WHERE model_a = 'puppet' AND model_b = 'third' "
        "UNION ALL SELECT p_exact, conservative_verdict FROM model_comparisons WHERE model_a = 'third' "
        "AND model_b = 'puppet'"
    )
    assert (p_value, verdict == "undecided") == (pytest.approx(2 / 64), False)

    # The looks were at other answers of the baseline than those that are on record by now.
    place = Partition("small", "puppet", DAY)
    assert baseline_verdict(drawn.workspace(), place, "third") is None
    answers("third", 20.0)
    drawn.evaluate(version="third", epoch="again")
    told = baseline_verdict(drawn.workspace(), place, "third")
    assert told is not None
    assert "worse than third" in told


ABILITIES = {"good": 1.2, "bad": -2.0, "worst": -6.0}


class Named(Puppet):
    """Answers as the made-up model of its model version's name, with a journal of its own."""

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        self.name = version.name

    def request(self, call: Call) -> Json:
        return {"version": self.name, "turn": call.turn_id, "number": call.number}

    async def generate(self, call: Call) -> Response:
        Puppet.asked.append(call)
        if self.name == "worst" and len(Puppet.asked) == CUT_OFF:
            raise FatalCallError("no credit")
        ability = ABILITIES[self.name]
        is_right = right(self.name, ability, call.case_id, call.turn_index)
        return response(call.gold.oracle() if is_right else number(-1))


CUT_OFF = 31
"""The call that fails, the first time: within the second batch of the second model version, or later."""


@pytest.mark.always
def test_several_are_ranked_by_the_same_cases(
    drawn: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`third` has been evaluated in full and is asked nothing; an interrupted ranking goes on with the same cases."""
    monkeypatch.setitem(registry.PROVIDERS, "named", f"{__name__}:Named")
    drawn.versions(
        *({"name": name, "provider": "puppet", "price": PRICE, "max_tokens": 20} for name in EARLIER),
        *({"name": name, "provider": "named"} for name in ABILITIES),
    )
    names = ("third", *ABILITIES)
    ranked = ("run", "--suite", "small", "--eval-date", DAY.isoformat(), "--until", "ranked", "--no-report")
    command = (*ranked, *(part for name in names for part in ("--model-version", name)))
    said = drawn.cli(*ranked, "--model-version", "good")
    assert (said.code, "small has one model version to rank; name two or more" in said.err) == (2, True), said.text
    said = drawn.cli("plan", *(part for part in command[1:] if part != "--no-report"))
    assert "until     ranked: chosen uniformly, the same for all that are ranked" in said.out, said.text
    assert not puppet.asked

    places = [Partition("small", name, DAY) for name in names]
    cut_off = rank(drawn.workspace(), places, 0, RunContext(), SILENT)
    assert "small, worst: " in cut_off.problems[0] and places[-1] not in cut_off.scopes
    assert "third" in cut_off.text and "worst" not in cut_off.text
    ended = {design(drawn, name).ended for name in ("good", "bad")} - {""}
    assert ended == {"decided: its place among 3 model versions"}, "the one that failed has no place"
    before = len(puppet.asked)
    said = drawn.cli(*command)
    assert said.code == 0, said.text
    (order,) = [line for line in said.err.splitlines() if "ranked: " in line]
    assert re.search(r"small, ranked: .*> bad \d+(\.\d)?% > worst \d+\.\d%", order), order
    assert len(puppet.asked) - before <= TURNS, "what was asked is not asked again"
    found = {name: design(drawn, name) for name in ABILITIES}
    shortest = min(len(one.batches) for one in found.values())
    assert len({str(one.batches[:shortest]) for one in found.values()}) == 1, "the same cases, by the same chances"
    assert found["worst"].left and found["worst"].ended == "decided: its place among 4 model versions"
    board = dict(drawn.sql("SELECT model_version, scope FROM leaderboard_details"))
    assert (
        board["worst"] == f'{{"batches":{len(found["worst"].batches)},"until":"ranked"}}' and board["third"] == "full"
    )
    ((stopped, low, high),) = drawn.sql(
        "SELECT stopped, low, high FROM sampled_estimates WHERE stopped IS NOT NULL AND model_version = 'worst'"
    )
    assert stopped == found["worst"].ended and low <= share("worst", ABILITIES["worst"]) <= high

    # The same again asks nothing and says the same; another seed would be another draw.
    asked = len(puppet.asked)
    again = rank(drawn.workspace(), places, 0, RunContext(), SILENT)
    assert (len(puppet.asked), again.problems) == (asked, []) and again.text in order
    with pytest.raises(UsageError, match="were drawn differently: another --seed"):
        rank(drawn.workspace(), places, 4, RunContext(), SILENT)
