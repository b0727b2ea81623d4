"""Whatever is changed in code that decides figures: it is scored again, or no figure changes. No version is bumped."""

import ast
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.cli.evaluating.demo import START
from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import CARRIERS, Workspace
from eval_pipeline_tests.chain.mutants import Mutant, mutants
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import PRODUCT, ROOT, SHIPPED, Lab, copied_product

MEASURED = ("cpu%", "r_ves", "performance_score", "overall_%")
"""Metrics made of times, which differ from run to run."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages, to be changed."""
    folder = tmp_path_factory.mktemp("mutated")
    copied_product(folder)
    return folder


@pytest.fixture
def shipped(lab: Lab) -> Lab:
    return with_shipped(lab)


@pytest.fixture(scope="module")
def before(copy: Path, module_folder: Path) -> dict[str, str]:
    """Fingerprints of the copy as it was made."""
    return dict(fingerprints(with_shipped(Lab.at(module_folder)).workspace(), copy))


def with_shipped(lab: Lab) -> Lab:
    for suite in (SHIPPED / "suites").iterdir():
        (lab.home.data / "suites" / suite.name).symlink_to(suite)
    shutil.copy(SHIPPED / "model_versions.yaml", lab.home.data)
    return lab


def fingerprints(workspace: Workspace, copy: Path, first: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Of every stage of every shipped suite, as that copy of the packages computes them; some suites come first."""
    found = Fingerprints(copy / "fingerprints", roots={name: copy / name for name in PRODUCT}, stops=CARRIERS)
    for suite in dict.fromkeys([*first, *workspace.suites]):
        inputs = Inputs(workspace, suite)
        for stage in chain_of(inputs.track):
            yield f"{suite}/{stage.name}", found.of(*stage.code(inputs)).code
    found.save()


def affected(workspace: Workspace, mutant: Mutant) -> tuple[str, ...]:
    """Suites that show whether the mutant changes figures.

    Those of its track. All tracks share `statistics`: some whose turns cost little and depend on no clock are enough.
    """
    _, floor, name = mutant.file.parts[:3]
    if floor != "tracks":
        return ("finqa_sample", "sdmx_sample", "tickets_sample")
    return tuple(
        suite for suite in workspace.suites if f".tracks.{name}." in type(Inputs(workspace, suite).track).__module__
    )


def figures(lab: Lab, copy: Path, suites: tuple[str, ...]) -> list[tuple[object, ...]]:
    """What these suites come to with a copy of the packages, in a home of its own."""
    home = copy / "home"
    shutil.rmtree(home, ignore_errors=True)
    environment = os.environ | lab.environment | {"EVAL_HOME": str(home), "PYTHONPATH": f"{copy}:{ROOT}"}
    command = [sys.executable, "-c", START, "run", "--no-report"]
    command += [argument for suite in suites for argument in ("--suite", suite)]
    subprocess.run([*command, "--model-version", "simulated-weak"], env=environment, cwd=copy, check=False)
    mutated = Lab(type(lab.home)(home, lab.home.data))
    columns = "suite, metric, split, split_value, n, mean, se, low, high"
    is_measured = " OR ".join(f"metric LIKE '{name}'" for name in MEASURED)
    return mutated.sql(f"SELECT {columns} FROM statistics WHERE NOT ({is_measured}) ORDER BY ALL")


def try_them(lab: Lab, copy: Path, before: dict[str, str], number: int) -> None:
    drawn = random.Random(SEED).sample(mutants(copy), number)
    print(f"seed {SEED}, {number} mutants")
    silent = []
    for mutant in drawn:
        with changed(copy, mutant):
            after = fingerprints(lab.workspace(), copy, affected(lab.workspace(), mutant))
            if all(before[stage] == code for stage, code in after):
                silent.append(mutant)
    print(
        f"{number - len(silent)} lead to scoring again; {len(silent)} do not: {', '.join(map(str, silent)) or 'none'}"
    )
    expected: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
    for mutant in silent:
        suites = affected(lab.workspace(), mutant)
        if suites not in expected:
            expected[suites] = figures(lab, copy, suites)
            assert expected[suites]
        with changed(copy, mutant):
            assert figures(lab, copy, suites) == expected[suites], (
                f"{mutant} changes figures, and nothing is scored again (seed {SEED})"
            )


@contextmanager
def changed(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with a mutant in it."""
    path = copy / mutant.file
    before = path.read_text()
    path.write_text(mutant.text)
    try:
        yield
    finally:
        path.write_text(before)


def test_a_few_mutants(shipped: Lab, copy: Path, before: dict[str, str]) -> None:
    try_them(shipped, copy, before, 2)


@pytest.mark.soak
def test_many_mutants(shipped: Lab, copy: Path, before: dict[str, str]) -> None:
    try_them(shipped, copy, before, 300)


def test_there_are_mutants_of_every_kind(copy: Path) -> None:
    found = mutants(copy)
    assert len(found) > 400
    assert {"<", "*", "==", "and", "not"} <= {word for mutant in found for word in mutant.what.split()}
    for mutant in found[::20]:
        ast.parse(mutant.text)
    assert {mutant.file.parts[1] for mutant in found} == {"tracks", "statistics"}


def remarks(copy: Path) -> Iterator[Path]:
    yield from (file for name in PRODUCT for file in sorted((copy / name).rglob("*.py")) if file.read_text().strip())


def test_remarks_everywhere_change_no_fingerprint(shipped: Lab, copy: Path, before: dict[str, str]) -> None:
    for file in remarks(copy):
        file.write_text(f"# a remark\n{file.read_text()}\n\n\n# and another\n")
    assert dict(fingerprints(shipped.workspace(), copy)) == before
