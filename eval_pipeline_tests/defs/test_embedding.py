"""A suite as a component in somebody else's Dagster project."""

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.defs.assets.dates import freshness
from eval_pipeline.defs.running.launch import QUIET
from eval_pipeline_tests.defs.runs import TAGS
from eval_pipeline_tests.support import TWO_CASES, Lab

PYPROJECT = """
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "host_project"
"""
COMPONENT = """
type: eval_pipeline.defs.embedding.EvalSuite
attributes:
  suite: {suite}
"""
HOST = """
import dagster as dg

@dg.asset(deps=[dg.AssetKey(["small", "published"])], group_name="host")
def decision() -> None: ...

@dg.definitions
def defs():
    return dg.Definitions(assets=[decision], executor=dg.multiprocess_executor)
"""


def host(folder: Path, *suites: str) -> Path:
    """A project with an asset of its own, and a component a suite."""
    defs = folder / "host_project" / "defs"
    for suite in suites:
        (defs / suite).mkdir(parents=True)
        (defs / suite / "defs.yaml").write_text(COMPONENT.format(suite=suite))
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "host_project" / "__init__.py").touch()
    (defs / "__init__.py").touch()
    (defs / "decisions.py").write_text(HOST)
    return folder


@pytest.fixture
def at_home(small: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    for name in ("host_project", "host_project.defs"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    (tmp_path / "project").mkdir()
    return small


def test_suites_are_assets_of_the_project_with_jobs_that_run(
    at_home: Lab, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    at_home.suite("other", [TWO_CASES[0]])
    defs = dg.load_from_defs_folder(path_within_project=host(tmp_path / "project", "small", "other"))
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert {graph.get(key).group_name for key in graph.get_all_asset_keys()} == {"host", "small", "other"}
    assert graph.get(dg.AssetKey("decision")).parent_keys == {dg.AssetKey(["small", "published"])}
    sensors = {f"register_model_versions_{suite}" for suite in ("small", "other")}
    assert {sensor.name for sensor in defs.sensors or ()} == sensors
    assert {"suite_small", "suite_other"} <= {job.name for job in defs.resolve_all_job_defs()}
    job = defs.resolve_job_def("suite_small")
    assert job.executor_def == dg.in_process_executor
    with handlers_kept():
        result = job.execute_in_process(QUIET, instance, partition_key="puppet", tags=TAGS, raise_on_error=False)
    assert result.success
    assert at_home.sql("SELECT DISTINCT suite, model_version FROM turn_results") == [("small", "puppet")]


def test_a_suite_that_there_is_not_is_told_with_those_there_are(at_home: Lab, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="EvalSuite") as found:
        dg.load_from_defs_folder(path_within_project=host(tmp_path / "project", "smal"))
    assert isinstance(found.value.__cause__, UsageError)
    assert str(found.value.__cause__) == "unknown suite 'smal'; known: small"


@pytest.mark.parametrize(
    ("cron", "pause"),
    [("", timedelta(days=1)), ("0 3 * * 1-5", timedelta(days=3)), ("0 */6 * * *", timedelta(hours=6))],
)
def test_a_suite_is_late_hours_after_the_longest_pause_between_two_nights(
    monkeypatch: pytest.MonkeyPatch, cron: str, pause: timedelta
) -> None:
    monkeypatch.setenv("EVAL_TIMEZONE", "UTC")
    monkeypatch.setenv("EVAL_NIGHTLY_CRON", cron)
    monkeypatch.delenv("EVAL_NIGHTLY", raising=False)
    assert freshness() is None, "nobody said that there are nights"
    monkeypatch.setenv("EVAL_NIGHTLY", "1")
    found = freshness()
    assert found == dg.FreshnessPolicy.time_window(pause + timedelta(hours=6), pause + timedelta(hours=3))
    monkeypatch.setenv("EVAL_NIGHTLY_CRON", "every night")
    with pytest.raises(UsageError, match=r"EVAL_NIGHTLY_CRON is 'every night', .* expected one such as '0 2 \* \* \*'"):
        freshness()
