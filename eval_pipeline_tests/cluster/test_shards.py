"""A stage in shards writes what it writes in one piece: same bytes, whichever order, interruptions and repeats."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.chain import runner, shards
from eval_pipeline.chain.shards import TURNS_A_SHARD, cut, run_shard
from eval_pipeline.cluster.port import Task
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.model import Attempt, Json
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.stages.attempts import rows
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.scope import Scope
from eval_pipeline_tests.cluster.in_this_process import InThisProcess, answered, compared, files, without_evidence
from eval_pipeline_tests.support import Lab, Puppet, case


def test_shards_of_sql_write_the_same_bytes(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    from eval_pipeline.sandbox.sql import SqlRunner

    monkeypatch.setattr(SqlRunner, "time_pair_now", lambda *_: (0.001, 0.001))  # measured times differ each time
    answered(lab)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "open_cluster", lambda: None)
        compared(lab, "shop")
        whole = files(lab)
        without_evidence(lab)
    compared(lab, "shop")
    assert len(cluster.tasks) == len(cluster.ran) == 4
    assert files(lab) == whole
    assert not lab.home.parts.exists()


def test_shards_are_whole_conversations(small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runner, "open_cluster", lambda: None)
        compared(small)
        whole = files(small)
        without_evidence(small)
    compared(small)
    assert [(task["first"], task["end"]) for task in cluster.tasks] == [(0, 1), (1, 2)]
    assert files(small) == whole


def test_an_interrupted_run_goes_on_where_it_was(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    cluster.dies_after = 1
    with pytest.raises(KeyboardInterrupt):
        compared(small)
    assert len(list(small.home.parts.rglob("*.jsonl"))) == 1
    assert not list((small.home.record / "evidence").rglob("*.parquet"))
    cluster.dies_after, before = None, list(cluster.ran)
    compared(small)
    assert len(cluster.ran) == len(cluster.tasks)
    assert cluster.ran[: len(before)] == before
    assert not small.home.parts.exists()


def test_a_run_that_lost_its_lease_leaves_record_and_parts_alone(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    class Lost:
        def check(self) -> None:
            raise EvalError("another host has taken over")

    monkeypatch.setattr(runner, "_in_turn", lambda stage, _: nullcontext(Lost() if stage.shards else None))
    with pytest.raises(EvalError, match="another host has taken over"):
        compared(small)
    assert len(list(small.home.parts.rglob("*.jsonl"))) == 2
    assert not list((small.home.record / "evidence").rglob("*.parquet"))


def test_a_record_that_was_replaced_meanwhile_is_told_as_such(small: Lab, cluster: InThisProcess) -> None:
    """Not as a worker that has other files than the run."""
    compared(small)
    without_evidence(small)

    def replacing(tasks: Sequence[Task]) -> Sequence[Task]:
        small.suite(cases=[case("gamma", ("50", 50.0))])
        for stage in ("raw_dataset", "cases"):
            small.stage(stage, small.inputs("small"))
        return tasks

    cluster.order = replacing
    with pytest.raises(EvalError, match="another run has replaced cases in the record meanwhile"):
        small.stage("evidence", small.inputs("small"))
    assert not list((small.home.record / "evidence").rglob("*.parquet"))


def test_two_runs_of_an_evaluation_take_turns(small: Lab, cluster: InThisProcess) -> None:
    """Otherwise the first to end removes the parts that the other is about to read."""
    others = list[Thread]()

    def meanwhile(tasks: Sequence[Task]) -> Sequence[Task]:
        if not others:
            others.append(Thread(target=compared, args=(small,)))
            others[0].start()
            others[0].join(0.5)
        return tasks

    cluster.order = meanwhile
    compared(small)
    others[0].join()
    assert len(cluster.ran) == len(cluster.tasks)
    assert small.one("SELECT count(*) FROM evidence") == 3


def test_a_shard_reads_the_answers_of_its_cases(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    parsed: list[list[str]] = []
    real = rows.attempt_from_row

    def noted(track: Track, row: Mapping[str, Any]) -> Attempt:
        parsed[-1].append(row["case_id"])
        return real(track, row)

    def run(task: Task) -> Mapping[str, Json]:
        parsed.append([])
        return run_shard(task)

    monkeypatch.setattr(shards, "run_shard", run)
    monkeypatch.setattr(rows, "attempt_from_row", noted)
    compared(small)
    assert parsed == [["beta"], ["alpha", "alpha"]]  # the cluster here takes the last shard first


@pytest.mark.dagster
def test_dagsters_events_do_not_depend_on_the_number_of_shards(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    shards_made, events = list[int](), list[Counter[str]]()
    for most, day in (("1", "2026-03-01"), ("1000", "2026-03-02")):
        monkeypatch.setenv(TURNS_A_SHARD, most)
        said = small.cli("run", "--no-report", "--eval-date", day)
        assert said.code == 0, said.text
        shards_made.append(len(cluster.tasks))
    with open_instance(small.home) as instance:
        for run in instance.get_runs():
            events.append(Counter(str(entry.dagster_event_type) for entry in instance.all_logs(run.run_id)))
    assert shards_made == [2, 1]
    assert len(events) == 2 and events[0] == events[1]


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_wrong_size_is_a_sentence(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess, text: str
) -> None:
    monkeypatch.setenv(TURNS_A_SHARD, text)
    with pytest.raises(UsageError, match=f"EVAL_SHARD_TURNS is '{text}'; expected a number of answers, at least 1"):
        compared(small)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 40))
def test_cutting_loses_nothing(answers: list[int], most: int) -> None:
    found = list(cut(answers, most))
    assert [place for within in found for place in within] == list(range(len(answers)))
    for within in found:
        held = [answers[place] for place in within if answers[place]]
        assert sum(held) <= most or len(held) == 1
    for one, following in pairwise(found):  # no two that would have fitted into one, and none that is empty
        assert sum(answers[place] for place in one) + answers[following.start] > most
        assert any(answers[place] for place in one)


def test_cases_that_were_not_asked_make_no_shards(small: Lab, cluster: InThisProcess) -> None:
    compared(small, scope=Scope(cases=("beta",)))
    assert [(task["first"], task["end"]) for task in cluster.tasks] == [(0, 2)]
    assert small.one("SELECT count(*) FROM evidence") == 1
