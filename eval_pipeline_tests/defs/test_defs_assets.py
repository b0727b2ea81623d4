"""The code location: what every asset of a suite's chain says of itself, and what it comes after."""

import json
from datetime import date
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.analysis.aggregates import installed_aggregates
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import EPOCH, EVAL_DATE, SCOPE, run_context, run_partition, run_scope
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.support import Lab, python
from eval_pipeline_tests.tracks.sql.helpers import shop_lab

AGGREGATES = {
    "statistics",
    "accuracy_by_complexity",
    "cost_per_correct_answer",
    "complexity_ceiling",
    "error_analysis",
    "coverage",
}
AGGREGATES |= set(installed_aggregates())
ARROWS = {
    "raw_dataset": set(),
    "cases": {"raw_dataset"},
    "generations": {"cases"},
    "recovery_attempts": {"generations"},
    "evidence": {"recovery_attempts"},
    "turn_metrics": {"evidence"},
    **{name: {"turn_metrics"} for name in AGGREGATES},
    "gold_editions": {"statistics"},
    "report": {"published"},
    "model_comparisons": {"statistics", "coverage"},
    "trends": {"statistics", "coverage", "cost_per_correct_answer"},
    "gold_suspects": {"statistics"},
    "reviews": {"statistics"},
    "comparison_published": {"model_comparisons", "trends", "gold_suspects", "reviews"},
    "comparison_report": {"comparison_published"},
}
"""What the picture shows: not what follows from other arrows."""
COMPARISONS = {"model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published", "comparison_report"}
"""What looks at all model versions of the suite."""


def graph(lab: Lab, name: str = "small") -> Any:
    workspace = lab.workspace()
    bound = dg.Definitions(resources={"evaluation": EvaluationResource(workspace, Silent())})
    return dg.Definitions.merge(bound, suite_definitions(workspace.suites[name], workspace)).resolve_asset_graph()


def test_the_chain_is_shown_without_arrows_that_follow_from_others(small: Lab) -> None:
    found = graph(small)
    reads = {
        key.path[-1]: {parent.path[-1] for parent in found.get(key).parent_keys} for key in found.get_all_asset_keys()
    }
    published = reads.pop("published")
    assert reads == ARROWS
    assert published == AGGREGATES - {"statistics"} | {"gold_editions"}
    assert {tuple(key.path[:-1]) for key in found.get_all_asset_keys()} == {("small",)}


def test_every_asset_says_what_it_is(small: Lab) -> None:
    found = graph(small)
    for key in found.get_all_asset_keys():
        node, name = found.get(key), key.path[-1]
        assert node.group_name == "small"
        assert node.owners
        assert node.kinds
        assert node.description
        assert node.code_version
        assert node.tags["track"] == "finqa"
        assert node.is_partitioned == (name not in {"raw_dataset", "cases", *COMPARISONS})
        if name not in {"published", "report", "comparison_published", "comparison_report"}:
            schema = node.metadata["dagster/column_schema"]
            columns = schema.schema.columns if hasattr(schema, "schema") else schema.columns
            assert len(columns) >= 3
            assert all(column.description and column.type for column in columns)
    checks = {(key.asset_key.path[-1], key.name) for key in found.asset_check_keys}
    assert checks == {
        ("cases", "every_case_read"),
        ("trends", "served_as_before"),
        ("cases", "gold_holds"),
        ("cases", "oracle_and_null"),
        ("turn_metrics", "every_turn_scored_once"),
        ("turn_metrics", "no_metric_errors"),
        ("turn_metrics", "budget_kept"),
        ("turn_metrics", "readable"),
        ("turn_metrics", "plausible"),
        ("trends", "no_significant_loss"),
        ("trends", "no_drift"),
    }


def test_a_track_with_a_judge_has_judgements_and_what_is_made_of_them(small: Lab) -> None:
    shop_lab(small)
    found = graph(small, "shop")
    reads = {
        key.path[-1]: {parent.path[-1] for parent in found.get(key).parent_keys} for key in found.get_all_asset_keys()
    }
    assert set(reads) - set(ARROWS) == {"published", "judgements", "calibration", "judge_agreement"}
    assert reads["judgements"] == {"evidence"}
    assert reads["turn_metrics"] == {"judgements"}
    assert reads["judge_agreement"] == {"turn_metrics"}
    blocking = {key.name for key in found.asset_check_keys if found.get(key).blocking}
    assert blocking == {"oracle_and_null", "every_turn_scored_once", "unsafe_caught"}


def test_a_suite_that_cannot_be_read_has_the_same_chain(lab: Lab) -> None:
    lab.suite("small")
    lab.suite("broken", track="chess")
    names = [{key.path[-1] for key in graph(lab, name).get_all_asset_keys()} for name in ("small", "broken")]
    assert names[0] == names[1]


LOAD = """
import importlib, json, os, sys
from eval_pipeline.definitions import defs
import dagster as dg
dg.Definitions.validate_loadable(defs)
graph = defs.resolve_asset_graph()
schedule = defs.resolve_schedule_def("nightly")
os.environ["EVAL_NIGHTLY"] = "1"
on = importlib.reload(sys.modules["eval_pipeline.defs.automation.schedules"]).nightly
print(json.dumps({
    "groups": sorted({graph.get(key).group_name for key in graph.get_all_asset_keys()}),
    "jobs": sorted(job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")),
    "schedule": [schedule.cron_schedule, [schedule.default_status.value, on.default_status.value]],
    "sensor": defs.resolve_sensor_def("register_model_versions").default_status.value,
}))
"""


def test_the_code_location_loads(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.suite("one")
    lab.suite("two")
    lab.suite("broken", track="chess")
    monkeypatch.delenv("EVAL_NIGHTLY", raising=False)
    child = python(lab, "-c", LOAD)
    assert child.returncode == 0, child.stderr
    told = json.loads(child.stdout.splitlines()[-1])
    assert told["groups"] == ["broken", "one", "two"]
    assert {"all_suites", "suite_one", "suite_two", "suite_broken"} <= set(told["jobs"])
    assert told["schedule"] == ["0 2 * * *", ["STOPPED", "RUNNING"]]
    assert told["sensor"] == "RUNNING"


def test_the_date_of_an_asset_run_is_the_tag_else_the_newest_upstream_else_today(small: Lab) -> None:
    def found(tags: dict[str, str], upstream: tuple[object, ...] = (GENERATIONS,)) -> Partition:
        return run_partition("small", "puppet", tags, small.workspace(), upstream)  # type: ignore[arg-type]

    assert found({}).eval_date == date.today()
    small.evaluate(day=date(2026, 3, 4))
    small.evaluate(day=date(2026, 3, 2))
    assert found({}) == Partition("small", "puppet", date(2026, 3, 4))
    assert found({}, ()).eval_date == date.today()
    assert found({EVAL_DATE: "2026-03-02"}).eval_date == date(2026, 3, 2)
    assert run_partition("small", "other", {}, small.workspace(), (GENERATIONS,)).eval_date == date.today()


def test_scope_and_freshness_come_from_the_tags_of_the_run() -> None:
    scope = Scope(3, 4, tags=("even",))
    assert run_scope({SCOPE: scope.label()}) == scope
    assert run_scope({}) == Scope()
    assert run_context("r", {EPOCH: "tonight"}).epoch == "tonight"
    assert run_context("r", {}).epoch == ""
