"""A stage in shards writes what it writes in one piece: same bytes, whichever order, interruptions and repeats."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.chain import runner, shards
from eval_pipeline.chain.shards import TURNS_A_SHARD, cut, run_shard
from eval_pipeline.core.errors import DamagedFileError, EvalError, StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Attempt, Json, Partition
from eval_pipeline.operations.upkeep import doctor, pruning, removing
from eval_pipeline.operations.upkeep.purging import Removal
from eval_pipeline.stages import evidence
from eval_pipeline.stages.attempts import rows
from eval_pipeline.store.tables import EVIDENCE
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.shards import cluster as port
from eval_pipeline.workspace.shards import parts, workers
from eval_pipeline.workspace.shards.cluster import Task
from eval_pipeline.workspace.shards.part_files import PartFiles
from eval_pipeline.workspace.shards.parts import open_part, part_path, part_rows
from eval_pipeline_tests.chain.in_this_process import InThisProcess, answered, compared, files, without_evidence
from eval_pipeline_tests.chains import with_other_code
from eval_pipeline_tests.support import DAY, TWO_CASES, Lab, Puppet, case, number


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InThisProcess:
    found = InThisProcess()
    monkeypatch.setattr(runner, "open_cluster", lambda: nullcontext(found))
    monkeypatch.setenv(TURNS_A_SHARD, "1")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return found


def in_one_piece(lab: Lab, suite: str = "small") -> dict[str, bytes]:
    """The files of evidence that is gathered without a cluster; they are removed again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_cluster", lambda: None)
        compared(lab, suite)
    whole = files(lab)
    without_evidence(lab)
    return whole


def replace_cases(lab: Lab) -> None:
    """What another run does that finds another suite."""
    lab.suite(cases=[case("gamma", ("50", 50.0))])
    for stage in ("raw_dataset", "cases"):
        lab.stage(stage)


def test_shards_of_sql_write_the_same_bytes(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    from eval_pipeline.sandbox.sql.runner import SqlRunner

    monkeypatch.setattr(SqlRunner, "time_pair_now", lambda *_: (0.001, 0.001))  # measured times differ each time
    answered(lab)
    whole = in_one_piece(lab, "shop")
    compared(lab, "shop")
    assert len(cluster.tasks) == len(cluster.ran) == 4
    assert files(lab) == whole
    assert not lab.home.parts.exists()


def test_shards_are_whole_conversations(small: Lab, cluster: InThisProcess) -> None:
    whole = in_one_piece(small)
    compared(small)
    assert [(task["first"], task["end"]) for task in cluster.tasks] == [(0, 1), (1, 2)]
    assert files(small) == whole


def test_an_interrupted_run_goes_on_where_it_was(small: Lab, cluster: InThisProcess) -> None:
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
        replace_cases(small)
        return tasks

    cluster.order = replacing
    with pytest.raises(EvalError, match="another run has replaced cases in the record meanwhile"):
        small.stage("evidence")
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


def left_by_an_interrupted_run(lab: Lab, cluster: InThisProcess) -> Path:
    """The part of the one shard that was computed."""
    cluster.dies_after = 1
    with pytest.raises(KeyboardInterrupt):
        compared(lab)
    (part,) = lab.home.parts.rglob("*.jsonl")
    return part


def test_parts_of_other_answers_are_not_used(small: Lab, cluster: InThisProcess) -> None:
    left_by_an_interrupted_run(small, cluster)
    cluster.dies_after, cluster.ran = None, []
    Puppet.answer = staticmethod(lambda call: number(-1))
    compared(small, run=RunContext(epoch="fresh"))
    assert len(cluster.ran) == 2
    assert small.sql("SELECT DISTINCT verdict FROM evidence") == [("different",)]
    assert not small.home.parts.exists()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_part_whose_inputs_change_while_it_is_computed_is_not_kept(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess, how: str
) -> None:
    """Its name would say that it was made from those before; and what models wrote would outlive its removal."""
    compared(small)
    without_evidence(small)
    gather, changed = evidence.gather_kept, list[str]()

    def changing(*given: Any) -> Any:
        if not changed:
            changed.append(how)
            if how == "removed":
                small.record_file("generations").unlink()
            else:
                replace_cases(small)
        return gather(*given)

    monkeypatch.setattr(evidence, "gather_kept", changing)
    with pytest.raises(EvalError):
        small.stage("evidence")
    assert changed and not list(small.home.parts.rglob("*.jsonl"))


@pytest.mark.parametrize("how", ["the end is missing", "a value has changed"])
def test_a_damaged_part_is_computed_again(small: Lab, cluster: InThisProcess, how: str) -> None:
    part = left_by_an_interrupted_run(small, cluster)
    whole = part.read_text()
    if how == "the end is missing":
        part.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    else:
        part.write_text(whole.replace('"equal"', '"EQUAL"'))
    assert part.read_text() != whole
    cluster.dies_after = None
    with pytest.raises(DamagedFileError, match="is not what was written to it; it is removed, run again"):
        compared(small)
    assert not part.exists()
    compared(small)
    assert small.sql("SELECT verdict FROM evidence") == [("equal",)] * 3


def test_a_folder_that_another_run_removes_is_made_again(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    made = list[Path]()
    real = parts.make_folders

    def removed_once(folder: Path) -> None:
        real(folder)
        made.append(folder)
        if len(made) == 1:
            folder.rmdir()

    monkeypatch.setattr(parts, "make_folders", removed_once)
    compared(small)
    assert small.one("SELECT count(*) FROM evidence") == 3


def test_the_first_part_wins(small: Lab, cluster: InThisProcess) -> None:
    part = left_by_an_interrupted_run(small, cluster)
    state = part.stat()
    (task,) = [task for task in cluster.tasks if task["name"] == part.stem]
    assert run_shard(task)["reused"] is True
    assert (part.stat().st_ino, part.stat().st_mtime_ns) == (state.st_ino, state.st_mtime_ns)
    assert not [path for path in part.parent.iterdir() if path != part]


def test_a_part_that_came_meanwhile_stays(small: Lab, cluster: InThisProcess) -> None:
    compared(small)
    inputs = small.inputs()
    path = part_path(inputs, "evidence", "twin")
    with open_part(inputs, (EVIDENCE,), path) as outputs:
        outputs.line("evidence", {"kind": ["mine"]})
        path.write_text("the other's")
    assert path.read_text() == "the other's"
    assert list(path.parent.iterdir()) == [path]


def test_what_an_interrupted_run_left_goes_with_the_model_version(small: Lab, cluster: InThisProcess) -> None:
    part = left_by_an_interrupted_run(small, cluster)
    assert part.parents[1] in set(removing._folders(small.workspace(), Removal("puppet")))
    pruning._remove(small.workspace(), Partition("small", "puppet", DAY))
    assert not part.exists()


@pytest.mark.parametrize("text", ["", "{", '{"rows": 3}\n', '{"table": "evidence"}\n{"rows": 0}\n', "[]\n"])
def test_what_is_no_part_is_removed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(DamagedFileError):
        list(part_rows(PartFiles(Home(tmp_path, tmp_path)), path))
    assert not path.exists()


def test_a_worker_knows_suites_that_came_after_it_was_started(small: Lab, cluster: InThisProcess) -> None:
    compared(small)
    small.suite("later", TWO_CASES)
    compared(small, "later")
    assert len(list((small.home.record / "evidence").rglob("*.parquet"))) == 2


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OUR_KEY"])
def test_a_worker_with_keys_refuses_whatever_their_names(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess, name: str
) -> None:
    own = {"name": "ours", "provider": "openai", "model": "m", "options": {"api_key_env": "OUR_KEY"}}
    small.versions({"name": "puppet", "provider": "puppet"}, own)
    monkeypatch.setenv(name, "sk-1")
    with pytest.raises(UsageError, match=f"has {name}: workers run what models wrote and ask nobody") as caught:
        compared(small)
    assert "sk-1" not in str(caught.value)


def test_doctor_tells_of_unfit_workers(small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess) -> None:
    monkeypatch.setattr(port, "open_cluster", lambda: nullcontext(cluster))
    found = {one.topic: one for one in doctor._cluster(small.workspace())}
    assert not found["worker far"].fine
    assert found["worker far"].text == "process 7, no sandbox; has OPENAI_API_KEY; has 4 threads"


def test_tasks_hold_names_and_no_secrets(small: Lab, cluster: InThisProcess) -> None:
    compared(small)
    named = "name stage made_from first end home data suite model_version eval_date evaluation"
    assert {frozenset(task) for task in cluster.tasks} == {frozenset(named.split())}


def test_a_worker_with_other_code_refuses(small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess) -> None:
    def other_code(tasks: Sequence[Task]) -> Sequence[Task]:
        with_other_code(monkeypatch, "evidence_code")
        return tasks

    cluster.order = other_code
    with pytest.raises(UsageError, match="sees other code, libraries or files than the run that asks it"):
        compared(small)


def test_a_worker_with_several_threads_refuses(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    monkeypatch.setattr(workers, "threads", lambda: 4)
    with pytest.raises(UsageError, match=r"^a worker on \S+ has 4 threads; start it with --nthreads 1$"):
        compared(small)


def test_a_worker_older_than_its_code_refuses(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    monkeypatch.setattr(workers, "_LOOK_S", 0.0)
    monkeypatch.setattr(workers, "_newest_when_loaded", workers.newest_source())
    compared(small)
    found = {path.relative_to(Path(workers.__file__).parents[3]).parts[0] for path in workers.sources()}
    assert found == {"eval_pipeline", "eval_pipeline_plugins"}
    monkeypatch.setattr(workers, "_newest_when_loaded", workers.newest_source() - 1)
    without_evidence(small)
    with pytest.raises(UsageError, match=r"has changed since its worker was started; start it again"):
        compared(small)


def test_workers_with_another_home_are_told(
    small: Lab, monkeypatch: pytest.MonkeyPatch, cluster: InThisProcess
) -> None:
    monkeypatch.setattr(shards, "run_shard", lambda task: {"host": "far", "reused": False})
    with pytest.raises(StoreError, match=r"but it is not there; give workers the same home at the same path"):
        compared(small)
