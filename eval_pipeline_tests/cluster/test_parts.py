"""Parts of shards: whole or not used, never replaced, and gone when they are not needed."""

from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.chain.shards import run_shard
from eval_pipeline.core.errors import DamagedFileError, EvalError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.operations import pruning, removing
from eval_pipeline.operations.purging import Removal
from eval_pipeline.stages import evidence
from eval_pipeline.store.tables import EVIDENCE
from eval_pipeline.workspace import parts
from eval_pipeline.workspace.part_files import PartFiles
from eval_pipeline.workspace.parts import open_part, part_path, part_rows
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests.cluster.in_this_process import InThisProcess, compared, without_evidence
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, number


def left_by_an_interrupted_run(lab: Lab, cluster: InThisProcess) -> Path:
    """The part of the one shard that was computed."""
    cluster.dies_after = 1
    with pytest.raises(KeyboardInterrupt):
        compared(lab)
    (part,) = lab.home.parts.rglob("*.jsonl")
    return part


def test_parts_of_other_answers_are_not_used(small: Lab, cluster: InThisProcess) -> None:
    cluster.dies_after = 1
    with pytest.raises(KeyboardInterrupt):
        compared(small)
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
    gather, changed = evidence.gather_all, list[str]()

    def changing(*given: Any) -> Any:
        if not changed:
            changed.append(how)
            if how == "removed":
                small.record_file("generations").unlink()
            else:
                small.suite(cases=[case("gamma", ("50", 50.0))])
                small.stage("raw_dataset", small.inputs("small"))
                small.stage("cases", small.inputs("small"))
        return gather(*given)

    monkeypatch.setattr(evidence, "gather_all", changing)
    with pytest.raises(EvalError):
        small.stage("evidence", small.inputs("small"))
    assert changed and not list(small.home.parts.rglob("*.jsonl"))


def test_a_damaged_part_is_computed_again(small: Lab, cluster: InThisProcess) -> None:
    part = left_by_an_interrupted_run(small, cluster)
    part.write_text("".join(part.read_text().splitlines(keepends=True)[:-1]))  # the end is missing
    cluster.dies_after = None
    with pytest.raises(DamagedFileError, match="is not what was written to it; it is removed, run again"):
        compared(small)
    assert not part.exists()
    compared(small)
    assert small.one("SELECT count(*) FROM evidence") == 3


def test_a_part_in_which_a_value_has_changed_is_not_used(small: Lab, cluster: InThisProcess) -> None:
    part = left_by_an_interrupted_run(small, cluster)
    damaged = part.read_text().replace('"equal"', '"EQUAL"')
    assert damaged != part.read_text()
    part.write_text(damaged)
    cluster.dies_after = None
    with pytest.raises(DamagedFileError, match="is not what was written to it"):
        compared(small)
    compared(small)
    assert small.sql("SELECT DISTINCT verdict FROM evidence") == [("equal",)]


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
