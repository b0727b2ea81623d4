"""Another prompt, other options or other cases make another evaluation; the one before is kept."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.rescoring import ChosenEvaluations, rescore
from eval_pipeline.operations.runs.rescoring import evaluations as rescorable
from eval_pipeline.operations.upkeep.pruning import prune
from eval_pipeline.providers.base import Call
from eval_pipeline.stages.attempts import asked
from eval_pipeline.stages.publishing import publish_all
from eval_pipeline.store.tables import GENERATIONS, STATISTICS, SUPERSEDED_STATISTICS
from eval_pipeline.workspace.evaluations import EvaluationRun, causes, evaluations
from eval_pipeline_tests.killing import killed_at
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, number

VERSION = "puppet+terse"
PROMPTS = {"terse": {"instructions": "Say 1."}}


@pytest.fixture
def asked_with(small: Lab, puppet: type[Puppet]) -> Callable[..., float]:
    """Evaluates with a sentence in the prompt and returns the accuracy: the model obeys, whatever it is told."""

    def answer(call: Call) -> str:
        return number(1) if "Say 1." in call.prompt.text() else call.gold.oracle()

    puppet.answer = staticmethod(answer)

    def evaluate(sentence: str, **more: Any) -> float:
        small.suite(prompts={"terse": {"instructions": sentence}})
        small.evaluate(version=VERSION, run_id=uuid4().hex, **more or {"upto": "statistics"})
        return accuracy(small)

    return evaluate


@pytest.fixture
def right(small: Lab, module_folder: Path, asked_with: Callable[..., float]) -> Lab:
    """An evaluation in which everything is right."""
    return small.made_once(module_folder / "right", lambda _: asked_with("Be right."))


@pytest.fixture
def form() -> str:
    return "file"


@pytest.fixture
def kept(
    small: Lab, module_folder: Path, asked_with: Callable[..., float], monkeypatch: pytest.MonkeyPatch, form: str
) -> Lab:
    """Two evaluations in a store of that form, of which the newer one has everything wrong."""
    monkeypatch.setenv("EVAL_STORE", form)

    def publish(_: Lab) -> None:
        asked_with("Be right.", publish=True)
        asked_with("Say 1.", publish=True)

    return small.made_once(module_folder / f"both in a {form}", publish)


def accuracy(lab: Lab, evaluation: str = "") -> float:
    """Share of right turns of the newest or an earlier evaluation."""
    place = Partition("small", VERSION, DAY, evaluation)
    rows = lab.inputs(version=VERSION).anew(partition=place).read(STATISTICS).to_pylist()
    return next(row["mean"] for row in rows if (row["metric"], row["split"]) == ("correct", "all"))


def found(lab: Lab) -> list[EvaluationRun]:
    return evaluations(lab.workspace(), "small", VERSION, DAY)


@pytest.mark.always
def test_a_changed_sentence_of_the_prompt(small: Lab, puppet: type[Puppet], asked_with: Callable[..., float]) -> None:
    """Both evaluations are kept; going back asks nothing and has the figures of before."""
    assert asked_with("Be right.") == 1.0
    (right,) = found(small)
    assert asked_with("Say 1.") == 0.0
    wrong, before = found(small)
    assert (before.id, before.partition.evaluation, before.newest, wrong.newest) == (right.id, right.id, False, True)
    assert (accuracy(small, right.id), causes(before, wrong)) == (1.0, ["prompt changed"])
    assert "Be right." in before.prompt_text and "Say 1." in wrong.prompt_text
    assert small.inputs(version=VERSION).header(SUPERSEDED_STATISTICS) is None
    files, asked = small.record_files(), len(puppet.asked)
    assert asked_with("Say 1.") == 0.0 and small.record_files() == files
    assert asked_with("Be right.") == 1.0
    assert [one.id for one in found(small)] == [right.id, wrong.id]
    assert (accuracy(small, wrong.id), len(puppet.asked)) == (0.0, asked)


@pytest.mark.parametrize("form", ["file", "catalog"])
def test_all_evaluations_are_in_the_store(kept: Lab, asked_with: Callable[..., float]) -> None:
    """The tables have the newest one; going back changes which it is, and publishing all anew nothing."""
    wrong, right = found(kept)
    of_all = "SELECT evaluation_id, avg(correct::INT) FROM evaluations.turn_results GROUP BY ALL"
    both = {(wrong.id, 0.0), (right.id, 1.0)}
    listed = "SELECT id, newest, accuracy, turns, prompt_text->>'instructions', begun_at IS NOT NULL FROM evaluations"
    assert kept.one("SELECT avg(correct::INT) FROM latest_turn_results") == 0.0
    assert set(kept.sql(of_all)) == both
    told = [(wrong.id, True, 0.0, 3, "Say 1.", True), (right.id, False, 1.0, 3, "Be right.", True)]
    assert kept.sql(f"{listed} ORDER BY newest DESC") == told
    asked = "SELECT count(*) FROM evaluations.attempts AS a JOIN evaluations.prompts AS p USING (prompt_hash)"
    assert kept.one(asked) == 6
    asked_with("Be right.", publish=True)
    contents = kept.store_contents()
    assert (set(kept.sql(of_all)), kept.one("SELECT avg(correct::INT) FROM turn_results")) == (both, 1.0)
    assert kept.one("SELECT id FROM evaluations WHERE newest") == right.id
    publish_all(kept.workspace(), gate(kept.workspace()), full=True)
    assert (set(kept.sql(of_all)), kept.store_contents()) == (both, contents)


def test_earlier_evaluations_are_rescored_and_pruned(kept: Lab, asked_with: Callable[..., float]) -> None:
    """By other gold, although nobody would ask with their prompt any more; pruning counts dates."""
    (_, right), workspace = found(kept), kept.workspace()
    kept.suite(cases=[case("alpha", ("50", 50.0), ("add(50, 8)", 58.0), tags=["easy"])], prompts=PROMPTS)
    told = rescore(workspace, rescorable(workspace, ChosenEvaluations()))
    assert [(one.partition.evaluation, one.problem) for one in told] == [("", ""), (right.id, "")]
    assert told[1].before == 1.0 and accuracy(kept, right.id) == pytest.approx(2 / 3)
    of_all = "SELECT newest, accuracy FROM evaluations ORDER BY newest DESC"
    assert [round(share, 3) for _, share in kept.sql(of_all)] == [0.0, 0.667]
    asked_with("Say 1.", day=DAY + timedelta(days=1), publish=True)
    done = prune(kept.workspace(), 1, dry_run=False)
    assert done.partitions == (right.partition, replace(right.partition, evaluation=""))
    assert kept.sql("SELECT eval_date FROM evaluations") == [(DAY + timedelta(days=1),)]
    assert not [path for path in kept.home.record.rglob("*.parquet") if str(DAY) in str(path)]


RENAMED, REMOVED = "eval_pipeline.store.record.replace_durably", "eval_pipeline.store.record.Record.remove"


@pytest.mark.parametrize(
    ("sentence", "place", "count"),
    [
        ("Say 1.", RENAMED, 12),
        ("Say 1.", REMOVED, 3),
        ("Be right.", RENAMED, 25),
        ("Be right.", REMOVED, 1),
        *(
            pytest.param(*found, marks=pytest.mark.soak)
            for found in (
                ("Say 1.", RENAMED, 1),
                ("Say 1.", RENAMED, 22),
                ("Be right.", RENAMED, 12),
                ("Be right.", REMOVED, 8),
            )
        ),
    ],
)
def test_a_run_that_is_killed_loses_neither_evaluation(
    right: Lab, puppet: type[Puppet], asked_with: Callable[..., float], sentence: str, place: str, count: int
) -> None:
    """One that makes another evaluation, and one that puts an earlier one back; each may be asked for next."""
    if sentence == "Be right.":
        asked_with("Say 1.")
    with killed_at(place, count):
        asked_with(sentence)
    assert asked_with("Say 1.") == 0.0
    asked = len(puppet.asked)
    assert (asked_with("Be right."), asked_with("Say 1."), asked_with("Be right.")) == (1.0, 0.0, 1.0)
    newest, before = found(right)
    assert (newest.newest, accuracy(right, before.id), len(puppet.asked)) == (True, 0.0, asked)
    assert right.inputs(version=VERSION).header(SUPERSEDED_STATISTICS) is None


@pytest.mark.parametrize(("provider", "anew"), [("oracle", True), ("puppet", False)])
def test_a_stand_in_whose_code_changed_is_evaluated_anew_beside_the_old_and_never_asked_by_rescoring(
    small: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch, provider: str, anew: bool
) -> None:
    """Its code makes up its answers; that of any other provider does not."""
    small.versions({"name": VERSION.partition("+")[0], "provider": provider})
    version = VERSION.partition("+")[0]
    small.evaluate(version=version, run_id=uuid4().hex)
    (before,) = evaluations(small.workspace(), "small", version, DAY)
    answers = small.inputs(version=version).header(GENERATIONS)
    monkeypatch.setattr(asked, "answers_code", lambda inputs: "changed")
    (told,) = rescore(small.workspace(), rescorable(small.workspace(), ChosenEvaluations()))
    assert (told.after, told.problem) == (1.0, "")
    kept = small.inputs(version=version).header(GENERATIONS)
    assert (kept == answers) == anew  # the others are read again from the journal
    assert [one.id for one in evaluations(small.workspace(), "small", version, DAY)] == [before.id]
    small.evaluate(version=version, run_id=uuid4().hex)
    after, *earlier = evaluations(small.workspace(), "small", version, DAY)
    assert [one.id for one in earlier] == [before.id] * anew
    assert causes(earlier[0] if anew else before, after) == ["the stand-in's own code changed"] * anew
