"""Identities of evaluations."""

from datetime import UTC, datetime
from typing import Any

import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, RUNS
from eval_pipeline.workspace.evaluations import ADDED, EvaluationRun, causes, evaluations, id_of, is_same
from eval_pipeline_tests.support import DAY, Lab, Puppet

BEFORE = {"identity": "i", "prompt": "v1", "predictions": "", "epoch": "", "cases": "c", "data": "d", "code": "x"}
BEFORE |= {"scope": "full", "price": "p", "prompt_hash": "h"}
OLDER = {name: text for name, text in BEFORE.items() if name not in ADDED}


@pytest.mark.parametrize(
    ("before", "changed", "same"),
    [
        (BEFORE, {"cases": "with another gold", "code": "y", "scope": "{}", "price": "q"}, True),
        *[(BEFORE, {name: "another"}, False) for name in ("identity", "prompt", "predictions", "epoch", "data")],
        (BEFORE, {"prompt_hash": "another"}, False),
        (OLDER, {"data": "only known now"}, True),
        (OLDER, {"cases": "another, and nobody knows what of them"}, False),
        (OLDER, {"identity": "another"}, False),
    ],
)
def test_what_makes_another_evaluation(before: dict[str, str], changed: dict[str, str], same: bool) -> None:
    assert is_same(before, BEFORE | changed) is same


def made(**changes: Any) -> EvaluationRun:
    """An evaluation with changes."""
    told: dict[str, Any] = {
        "id": "a",
        "partition": Partition("s", "m", DAY),
        "begun_at": datetime(2026, 3, 1, tzinfo=UTC),
    }
    told |= {"settings": {"max_tokens": 9, "sampling": {"temperature": 0}}, "prompt": "v1", "prompt_text": ""}
    return EvaluationRun(**told | {"data_hash": "d", "epoch": "", "newest": True} | changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, []),
        ({"prompt": "v1+terse"}, ["prompt changed"]),
        ({"prompt_text": '{"before":"Be brief."}'}, ["prompt changed"]),
        ({"settings": {"max_tokens": 8, "sampling": {"temperature": 1}}}, ["options changed: max_tokens, temperature"]),
        ({"data_hash": "e", "epoch": "2026-03-01"}, ["cases changed", "asked anew"]),
    ],
)
def test_in_what_evaluations_differ(changes: dict[str, Any], told: list[str]) -> None:
    assert causes(made(), made(**changes)) == told


def test_the_files_of_an_earlier_evaluation_are_a_folder_deeper() -> None:
    """Its runs are with those of its date."""
    key = RecordKey.of(Partition("s", "m", DAY, "0123456789"))
    assert key.folders(GENERATIONS)[3:] == ("evaluation=0123456789",)
    assert key.folders(RUNS) == key.of_date.folders(RUNS) == key.of_date.folders(GENERATIONS)


def test_an_evaluation_tells_what_it_is(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet", "sampling": {"temperature": 0}})
    lab.evaluate()
    (found,) = evaluations(lab.workspace(), "small")
    assert (found.partition, found.newest, found.settings["sampling"]) == (
        Partition("small", "puppet", DAY),
        True,
        {"temperature": 0},
    )
    assert found.begun_at is not None and found.prompt == "plan-1" and len(found.id) == 10
    lab.evaluate(run_id="later")
    assert [one.id for one in evaluations(lab.workspace(), "small", "puppet", DAY)] == [found.id]
    generated = lab.inputs().header(GENERATIONS)
    assert generated is not None and id_of(found.partition, generated) == found.id
