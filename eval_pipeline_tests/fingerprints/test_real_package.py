"""The package itself: what a metric reaches, and that changes there are seen."""

import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline_tests.support import PRODUCT, ROOT, copied_product

METRIC = "eval_pipeline_plugins.tracks.finqa.metrics.matches:numerical_match"
MATCHING = "eval_pipeline_plugins.tracks.finqa.programs.matching"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return copied_product(tmp_path_factory.mktemp("copy"))


def test_a_metric_reaches_its_tolerance_and_little_else() -> None:
    from eval_pipeline_plugins.tracks.finqa.metrics import METRICS

    reached = Fingerprints().reached(METRIC)
    assert {METRIC, f"{MATCHING}:RELATIVE", f"{MATCHING}:ABSOLUTE", f"{MATCHING}:within_either"} <= reached.keys()
    assert f"{MATCHING}:answers_soft_match" not in reached
    assert len(reached) < 40
    (declared,) = (metric for metric in METRICS if metric.name == "numerical_match")
    assert Fingerprints().of(declared.function) == Fingerprints().of(METRIC)


def test_plug_ins_that_come_along_are_followed_by_definition() -> None:
    sql = "eval_pipeline_plugins.data_sets.sql"
    reached = Fingerprints().reached(f"{sql}.kaggledbqa:read_kaggledbqa")
    assert {f"{sql}.spider:spider_cases", "eval_pipeline.core.errors:InputError"} <= reached.keys()
    assert not [place for place in reached if place.startswith(f"{sql}.bird")]


def test_a_change_in_a_copy_is_seen(copied: dict[str, Path], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    before = Fingerprints(cache)
    metric, other = before.of(METRIC), before.of(f"{MATCHING}:answers_soft_match")
    before.save()
    assert Fingerprints(cache, roots=copied).of(METRIC) == metric
    path = copied["eval_pipeline"].parent / f"{MATCHING.replace('.', '/')}.py"
    source = path.read_text()
    assert "ABSOLUTE = 0.001" in source
    path.write_text(source.replace("ABSOLUTE = 0.001", "ABSOLUTE = 0.002"))
    try:
        after = Fingerprints(cache, roots=copied)
        assert after.of(METRIC).code != metric.code
        assert after.of(f"{MATCHING}:answers_soft_match") == other
    finally:
        path.write_text(source)


@pytest.mark.soak
def test_every_module_can_be_read() -> None:
    found = Fingerprints()
    paths = [path for name in PRODUCT for path in (ROOT / name).rglob("*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    modules = {name.removesuffix(".__init__") for name in names}
    reached = {place.partition(":")[0] for place in found.reached(*sorted(modules))}
    empty = modules - reached
    read = {name: found._module(name) for name in empty}
    assert [name for name, module in read.items() if module is None or module.definitions] == []


def test_the_libraries_of_sql_decide() -> None:
    libraries = Fingerprints().of("eval_pipeline_plugins.tracks.sql.track:TRACK").libraries
    assert {"sqlglot", "duckdb"} <= libraries.keys()
    assert "pandas" not in libraries


def test_importing_it_is_light() -> None:
    code = "import sys, eval_pipeline.fingerprints; print(*{name.partition('.')[0] for name in sys.modules})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"pandas", "numpy", "dagster", "pyarrow", "pydantic", "yaml"} & set(told.stdout.split())
