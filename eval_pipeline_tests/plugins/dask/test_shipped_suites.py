"""The shipped suites on workers and in one process: the same record, and the same published rows.

Here whole, in `test_dask.py` the first cases up to the last stage that uses workers.
Model versions are those that need no network and no weights: both simulated ones, `oracle` and `null`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.chain.shards import TURNS_A_SHARD
from eval_pipeline.core.home import Home
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.shards.cluster import ADDRESS
from eval_pipeline_tests.chain.in_this_process import compared
from eval_pipeline_tests.plugins.dask.dask_services import Services
from eval_pipeline_tests.plugins.dask.kill_rounds import contents
from eval_pipeline_tests.support import SHIPPED, Lab

pytestmark = pytest.mark.services("dask")
SUITES = ("finqa_sample", "pandas_sample", "sdmx_sample", "sql_sample")
VERSIONS = ("simulated-strong", "simulated-weak", "oracle", "null")
MEASURING = {"pandas_sample", "sql_sample"}
"""Suites with measured times; from `measured_evidence` on, their files differ by these."""
UNMEASURED = {"raw_dataset", "cases", "generations", "recovery_attempts", "evidence"}
OF_TOOLS = {"agents_sample": {"raw_dataset", "cases"}}
"""Suites whose responses have the measured times of tools, and what there is before these."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    found = Services(tmp_path_factory.mktemp("dask"))
    try:
        for _ in range(2):
            found.worker()
        yield found
    finally:
        found.end()


def evaluated(folder: Path, suite: str, version: str, most: int | None, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A home with an evaluation: published, or of the first cases up to the evidence."""
    lab = Lab(Home(folder, SHIPPED if most is None else folder.parent / "data"))
    if most is not None and not lab.home.data.exists():
        lab.shipped(suite, most + 1)
    for name, value in lab.environment.items():
        monkeypatch.setenv(name, value)
    for stage in ("raw_dataset", "cases"):
        lab.stage(stage, lab.inputs(suite, version))
    if most is None:
        lab.evaluate(suite, version, publish=True)
    else:
        cases = tuple(case.id for case in lab.workspace().cases(suite))[:most]
        compared(lab, suite, version=version, scope=Scope(cases=cases))
    return lab


def same(
    services: Services, folder: Path, suite: str, version: str, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", ADDRESS, DATABASE_URL):
        monkeypatch.delenv(name, raising=False)
    here = evaluated(folder / "here", suite, version, most, monkeypatch)
    monkeypatch.setenv(ADDRESS, services.url)
    monkeypatch.setenv(TURNS_A_SHARD, "5" if most is None else "1")
    there = evaluated(folder / "there", suite, version, most, monkeypatch)
    monkeypatch.delenv(ADDRESS)
    files = [
        {path.relative_to(lab.home.record): path.read_bytes() for path in lab.home.record.rglob("*.parquet")}
        for lab in (here, there)
    ]
    assert files[0].keys() == files[1].keys()
    other = {path.parts[0] for path, held in files[0].items() if files[1][path] != held}
    assert not other & UNMEASURED if suite in MEASURING else other <= {"runs"}, other
    assert {path.parts[0] for path in files[0]} >= {"generations", "evidence"}
    if most is None:
        found, expected = contents(there), contents(here)
        assert [name for name, rows in expected.items() if found[name] != rows] == []
        assert expected["turn_results"]


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("suite", SUITES)
def test_whole_suites(
    suite: str, version: str, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same(services, tmp_path, suite, version, None, monkeypatch)
