"""The stand-in that other tests run evaluations with does what Dagster's runs do."""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eval_pipeline.api.evaluating import evaluate
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.running import launch
from eval_pipeline.stages import score
from eval_pipeline.store.query import connect_read_only
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import run_rows
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests import direct
from eval_pipeline_tests.defs.runs import losing_a_turn
from eval_pipeline_tests.support import BROKEN, DAY, Lab, Puppet

OF_THE_RUN = {"run_id", "started_at", "finished_at", "published_at"}


def rows_of(store: Any, table: str) -> list[str]:
    """The rows without what is another one each time."""
    found = store.execute(f'SELECT * FROM "{table}"')
    kept = [number for number, (name, *_) in enumerate(found.description) if name not in OF_THE_RUN]
    return sorted(str([row[number] for number in kept]) for row in found.fetchall())


def loses_a_turn(patch: pytest.MonkeyPatch) -> None:
    losing_a_turn(patch, lambda inputs: inputs.place.model_version == "second")


def fails_to_score(patch: pytest.MonkeyPatch) -> None:
    def fails(_: Inputs) -> None:
        error = EvalError("it fails")
        error.example = "this answer"
        raise error

    patch.setattr(score, "load_evidence", fails)


@pytest.fixture
def made(small: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What evaluating leaves, through a launcher, in a home of its own."""
    numbers = count()

    def make(launcher: Any, versions: tuple[str, ...], scope: Scope, epoch: str) -> dict[str, Any]:
        lab = Lab.at(tmp_path / f"made{next(numbers)}")
        for name, value in lab.environment.items():
            monkeypatch.setenv(name, value)
        lab.suite()
        lab.suite("broken", track="chess")
        lab.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "puppet"})
        Puppet.answer = staticmethod(lambda call: BROKEN if call.turn_index else call.gold.oracle())
        monkeypatch.setitem(sys.modules, launch.__name__, launcher)
        places = [Partition(suite, version, DAY) for version in versions for suite in ("broken", "small")]
        told = evaluate(lab.workspace(), places, scope, epoch, Silent(), report=len(versions) > 1)
        paths = [path for path in lab.home.record.rglob("*.parquet") if "runs" not in path.parts]
        store = connect_read_only(lab.home.store) if lab.home.store.exists() else None
        query = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
        tables = store.execute(query).fetchall() if store else []
        return {
            "problems": [text.split("\n")[0].replace(str(lab.home.root.parent), "") for text in told.problems],
            "done": [told.done, told.notes],
            "record": {
                str(path.relative_to(lab.home.record)): pq.read_metadata(path).metadata[b"content_hash"]
                for path in paths
            },
            "store": {name: rows_of(store, name) for (name,) in tables},
            "runs": [
                {name: value for name, value in row.items() if name not in OF_THE_RUN}
                for place in places
                for row in run_rows(lab.workspace(), place)
            ],
            "reports": sorted(str(path.relative_to(lab.home.reports)) for path in lab.home.reports.rglob("*")),
        }

    return make


@pytest.mark.parametrize(
    ("versions", "scope", "epoch", "broken"),
    [
        (("puppet", "second"), Scope(), "", loses_a_turn),
        (("second",), Scope(), "", fails_to_score),
        (("puppet",), Scope(cases=("alpha",)), "tonight", None),
    ],
)
def test_runs_leave_and_say_what_dagsters_do(
    made: Callable[..., Any],
    versions: tuple[str, ...],
    scope: Scope,
    epoch: str,
    broken: Callable[..., None] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if broken:
        broken(monkeypatch)
    real, same = (made(launcher, versions, scope, epoch) for launcher in (launch, direct))
    for part, found in real.items():
        assert same[part] == found, part
