"""The code location: what every asset of a suite's chain says of itself, and what it comes after."""

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.core.covering.cost_limit import MAX_COST, CostLimit
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import EPOCH, EVAL_DATE, SCOPE, run_context, run_partition, run_scope
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.defs.dagster_inside.running import BACKFILL_ID_TAG, ROOT_RUN_ID_TAG, SCHEDULE_NAME_TAG
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.forked import completed
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sql.helpers import shop_lab

COMPARISONS = {"model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published", "comparison_report"}
"""What looks at all model versions of the suite."""


def graph(lab: Lab, name: str = "small") -> Any:
    workspace = lab.workspace()
    bound = dg.Definitions(resources={"evaluation": EvaluationResource(workspace, Silent())})
    return dg.Definitions.merge(bound, suite_definitions(workspace.suites[name], workspace)).resolve_asset_graph()


def arrows(found: Any) -> dict[str, set[str]]:
    """What each asset comes after, by name."""
    return {key.path[-1]: {one.path[-1] for one in found.get(key).parent_keys} for key in found.get_all_asset_keys()}


def before(drawn: dict[str, set[str]], name: str) -> set[str]:
    """All that an asset comes after."""
    return drawn[name].union(*(before(drawn, parent) for parent in drawn[name]))


def test_no_arrow_follows_from_others(small: Lab) -> None:
    found = graph(small)
    drawn = arrows(found)
    assert drawn.keys() == {stage.name for stage in chain_of(small.workspace().track("small"))}
    for name, parents in drawn.items():
        assert not [one for one in parents if any(one in before(drawn, other) for other in parents)], name
    assert [name for name, parents in drawn.items() if not parents] == ["raw_dataset"]
    assert (drawn["report"], drawn["comparison_report"]) == ({"published"}, {"comparison_published"})
    assert before(drawn, "published") == drawn.keys() - {"published", "report"} - COMPARISONS
    assert before(drawn, "comparison_published") >= COMPARISONS - {"comparison_published", "comparison_report"}
    assert {tuple(key.path[:-1]) for key in found.get_all_asset_keys()} == {("small",)}


def test_each_asset_comes_after_those_that_make_what_it_reads(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    read = set[str]()

    def noting(real: Callable[..., Any]) -> Callable[..., Any]:
        def noted(record: Record, table: Table, *given: Any, **more: Any) -> Any:
            read.add(table.name)
            return real(record, table, *given, **more)

        return noted

    for way in ("read", "row_groups"):
        monkeypatch.setattr(Record, way, noting(getattr(Record, way)))
    versions = ("puppet", "other")
    small.versions(*({"name": name, "provider": "puppet"} for name in versions))
    drawn, chain = arrows(graph(small)), chain_of(small.workspace().track("small"))
    made_by = {table.name: stage.name for stage in chain for table in stage.writes}
    for stage in sorted(chain, key=lambda stage: stage.name in COMPARISONS):
        for version in versions if stage.writes else ():
            read.clear()
            small.stage(stage.name, small.inputs(version=version))
            makers = {made_by[name] for name in read & made_by.keys()} - {stage.name}
            assert makers <= before(drawn, stage.name), stage.name


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
    checks = {f"{key.asset_key.path[-1]}: {key.name}" for key in found.asset_check_keys}
    of_turns = "every_turn_scored_once no_metric_errors budget_kept readable plausible gold_usable".split()
    assert checks == {
        *(f"cases: {name}" for name in ("every_case_read", "gold_holds", "oracle_and_null")),
        *(f"turn_metrics: {name}" for name in of_turns),
        *(f"trends: {name}" for name in ("no_significant_loss", "no_drift", "served_as_before")),
    }


def test_a_track_with_a_judge_has_judgements_and_what_is_made_of_them(small: Lab) -> None:
    shop_lab(small)
    found = graph(small, "shop")
    reads = arrows(found)
    assert reads.keys() - arrows(graph(small)).keys() == {
        "judgements",
        "calibration",
        "judge_agreement",
        "accuracy_by_contract",
    }
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


def test_the_code_location_loads(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.suite("one")
    lab.suite("two")
    lab.suite("broken", track="chess")
    monkeypatch.delenv("EVAL_NIGHTLY", raising=False)
    child = completed("eval_pipeline_tests.defs.runs:loaded", (), lab.environment)
    assert child.returncode == 0, child.stderr
    told = json.loads(child.stdout.splitlines()[-1])
    assert told["groups"] == ["broken", "one", "two"]
    assert {"all_suites", "suite_one", "suite_two", "suite_broken"} <= set(told["jobs"])
    sensors = [
        "morning_digest",
        "notify_failed_check",
        "notify_failed_run",
        "register_model_versions",
    ]
    assert told["automatic"] == sorted([*sensors, "nightly", "nightly_scrub"])
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


@pytest.mark.parametrize(
    ("tags", "account"),
    [
        ({SCHEDULE_NAME_TAG: "nightly", EVAL_DATE: "2026-01-15"}, "night 2026-01-15"),
        ({BACKFILL_ID_TAG: "abc", EVAL_DATE: "2026-01-15"}, "backfill abc"),
        ({ROOT_RUN_ID_TAG: "first", EVAL_DATE: "2026-01-15"}, "run first"),
        ({}, "run r"),
    ],
)
def test_runs_of_a_night_or_a_backfill_spend_under_one_limit(
    tags: dict[str, str], account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MAX_COST, raising=False)
    assert run_context("r", tags).cost_limit is None
    monkeypatch.setenv(MAX_COST, "5")
    assert run_context("r", tags).cost_limit == CostLimit(account, 5.0)
