"""Every place of the code that the tour, the recipes and the architecture name is there, and what guides import."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BELOW = (ROOT / "eval_pipeline", ROOT, ROOT / "eval_pipeline_tests", ROOT / "eval_pipeline_plugins")
_PLACE = re.compile(r"`((?:\w+/)+(?:\w+\.\w+)?(?::[\w.]+)?)`")


def named(document: str) -> list[str]:
    return sorted(set(_PLACE.findall((ROOT / document).read_text("utf-8"))))


DOCUMENTS = ("docs/tour.md", "CONTRIBUTING.md", "docs/architecture.md")
PLACES = [(document, place) for document in DOCUMENTS for place in named(document)]


@cache
def defined(module: Path) -> frozenset[str]:
    """Names of functions and classes of a module, and of the methods of its classes as `Class.method`."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    top = [node for node in ast.parse(module.read_text("utf-8")).body if isinstance(node, kinds)]
    within = [f"{node.name}.{part.name}" for node in top for part in node.body if isinstance(part, kinds)]
    return frozenset([*(node.name for node in top), *within])


def test_the_tour_names_functions() -> None:
    assert len([place for place in named("docs/tour.md") if ":" in place]) > 30


@pytest.mark.parametrize(("document", "place"), PLACES)
def test_a_place_that_is_named_is_there(document: str, place: str) -> None:
    path, _, name = place.partition(":")
    found = next((folder / path for folder in BELOW if (folder / path).exists()), None)
    assert found, f"{path} has moved: mend {document}"
    assert not name or name in defined(found), f"{path} has no {name}: mend {document}"


_IMPORTED = re.compile(r"from (eval_pipeline[\w.]*) import \(?([\w, \n]+)")


def imports() -> Iterator[tuple[str, str, str]]:
    """Document, module and name of what the examples of the guides import."""
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
        for module, names in _IMPORTED.findall(document.read_text("utf-8")):
            wanted = names.partition("\n\n")[0] if "\n" in names else names
            yield from ((document.name, module, name.split()[0]) for name in wanted.split(",") if name.strip())


@pytest.mark.parametrize(("document", "module", "name"), sorted(set(imports())))
def test_what_a_guide_imports_is_there(document: str, module: str, name: str) -> None:
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    assert file.exists(), f"{module} has moved: mend {document}"
    names = {one.id for one in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(one, ast.Name)}
    is_module = (path / name).is_dir() or (path / f"{name}.py").exists()
    assert is_module or name in defined(file) | names or f'"{name}"' in file.read_text("utf-8"), f"mend {document}"
