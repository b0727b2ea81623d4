"""A model version deleted from the file: it leaves what is shown, and comes back with its entry."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from dagster import DagsterInstance, build_sensor_context

from eval_pipeline.analysis.comparisons.verdicts import check_no_loss
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.automation.sensors import register_model_versions
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.stages.publishing import note_retired
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_COMPARISONS, MODEL_VERSIONS
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.support import DAY, Lab, Puppet, command

ALL = ("a", "b", "c")


def listed(lab: Lab, names: Sequence[str]) -> None:
    lab.versions(*({"name": name, "provider": "puppet", "model": name} for name in names))


def run(lab: Lab) -> None:
    said = command("run", "--suite", "small", "--eval-date", str(DAY), "--no-report")
    assert said.code in {0, 1}, said.text


@pytest.fixture
def three(lab: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    """Three model versions evaluated on one suite."""
    return lab.made_once(module_folder / "evaluated", evaluate_three)


def evaluate_three(lab: Lab) -> None:
    lab.suite()
    listed(lab, ALL)
    run(lab)


def leaderboard(lab: Lab, more: str = "") -> list[str]:
    return [name for (name,) in lab.sql(f"SELECT model_version FROM leaderboard('small'{more}) ORDER BY 1")]


def compared(lab: Lab) -> tuple[set[str], set[int]]:
    """Names in `model_comparisons`, and for how many pairs Holm corrects."""
    rows = lab.workspace().record.read(MODEL_COMPARISONS, RecordKey.of_suite("small")).to_pylist()
    return {row[side] for row in rows for side in ("model_a", "model_b")}, {row["pairs"] for row in rows}


def page(lab: Lab) -> str:
    ran_of_suite(lab.workspace(), "small", "comparison_report")
    (found,) = (lab.home.reports / "compare" / "small").glob("*/report.html")
    # The fixture puts the pictures of the first page into all of them.
    return re.sub(r"<svg.*?</svg>", "", found.read_text(), flags=re.DOTALL)


def test_it_leaves_and_comes_back(three: Lab) -> None:
    assert leaderboard(three) == list(ALL)
    assert compared(three) == (set(ALL), {3})
    listed(three, ("a", "c"))
    run(three)
    assert leaderboard(three) == ["a", "c"]
    assert leaderboard(three, ", with_retired := true") == list(ALL)
    assert three.sql("SELECT model_version FROM leaderboard_details('small', with_retired := true) WHERE retired") == [
        ("b",)
    ]
    assert compared(three) == ({"a", "c"}, {1})
    assert three.sql("SELECT DISTINCT model_version FROM turn_results ORDER BY 1") == [("a",), ("b",), ("c",)]
    assert three.sql("SELECT model_version FROM model_versions WHERE retired") == [("b",)]
    assert three.sql("SELECT DISTINCT model_version FROM trends WHERE retired") == [("b",)]
    assert ">b<" not in page(three)
    assert ">a<" in page(three)
    listed(three, ALL)
    run(three)
    assert leaderboard(three) == list(ALL)
    assert compared(three) == (set(ALL), {3})
    assert three.sql("SELECT count(*) FROM trends WHERE retired") == [(0,)]
    assert ">b<" in page(three)


def test_publishing_alone_takes_it_off_the_leaderboard(three: Lab) -> None:
    listed(three, ("a", "c"))
    assert command("publish").code == 0
    assert leaderboard(three) == ["a", "c"]
    assert three.sql("SELECT suite, model_version FROM leaderboard ORDER BY 2") == [("small", "a"), ("small", "c")]
    assert note_retired(three.workspace()) == []


def test_its_partition_goes_with_the_next_tick(three: Lab) -> None:
    listed(three, ("a", "c"))
    with open_instance(three.home) as instance:
        instance.add_dynamic_partitions(DIMENSION, list(ALL))
        tick = register_model_versions(build_sensor_context(instance=instance))
        (request,) = tick.dynamic_partitions_requests  # type: ignore[union-attr,misc]
        assert list(request.partition_keys) == ["b"]
        assert type(request).__name__ == "DeleteDynamicPartitionsRequest"


def test_it_can_still_be_compared_by_name(three: Lab) -> None:
    listed(three, ("a", "c"))
    said = command("compare", "a", "b")
    assert (said.code, "small · a (2026-03-01) → b (2026-03-01)" in said.out) == (0, True), said.text
    assert command("compare", "a", "x").code == 2


def test_where_no_file_lists_anything_nobody_is_retired(three: Lab) -> None:
    (three.home.data / "model_versions.yaml").unlink()
    assert note_retired(three.workspace()) == []
    with open_instance(three.home) as instance:
        instance.add_dynamic_partitions(DIMENSION, list(ALL))
        assert _tick(instance) == "every model version is registered"


def test_a_broken_file_retires_nobody(three: Lab) -> None:
    (three.home.data / "model_versions.yaml").write_text("model_versions: [")
    assert note_retired(three.workspace()) == []


def test_a_row_written_before_there_was_the_column_is_in_use(three: Lab) -> None:
    key = RecordKey.of_model_version("b")
    record = three.workspace().record
    (row,) = record.read(MODEL_VERSIONS, key).to_pylist()
    header = record.header(MODEL_VERSIONS, key)
    assert header is not None
    with record.writer(MODEL_VERSIONS, key, header.made_from) as writer:
        writer.write({column.name: [row[column.name]] for column in MODEL_VERSIONS.columns} | {"retired": [None]})
    assert command("publish").code == 0
    assert three.sql("SELECT retired FROM model_versions WHERE model_version = 'b'") == [(None,)]
    assert leaderboard(three) == list(ALL)


def test_its_losses_are_told_no_more(three: Lab) -> None:
    listed(three, ("a", "c"))
    run(three)
    assert check_no_loss(three.inputs()).facts["model_versions"] == 2


def _tick(instance: DagsterInstance) -> str:
    tick = register_model_versions(build_sensor_context(instance=instance))
    return str(getattr(tick, "skip_message", tick))
