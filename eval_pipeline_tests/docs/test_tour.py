"""Every place that the tour of the code names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text("utf-8")
PLACES = sorted(set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?(?::[\w.]+)?)`", TOUR)))


@cache
def defined(module: Path) -> frozenset[str]:
    """Names of functions and classes of a module, and of the methods of its classes as `Class.method`."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    top = [node for node in ast.parse(module.read_text("utf-8")).body if isinstance(node, kinds)]
    within = [f"{node.name}.{part.name}" for node in top for part in node.body if isinstance(part, kinds)]
    return frozenset([*(node.name for node in top), *within])


def test_the_tour_names_places() -> None:
    assert len(PLACES) > 40


@pytest.mark.parametrize("place", PLACES)
def test_a_place_of_the_tour_is_there(place: str) -> None:
    path, _, name = place.partition(":")
    found = next(
        (
            folder / path
            for folder in (ROOT / "eval_pipeline", ROOT, ROOT / "eval_pipeline_tests")
            if (folder / path).exists()
        ),
        None,
    )
    assert found, f"{path} has moved: mend docs/tour.md"
    assert not name or name in defined(found), f"{path} has no {name}: mend docs/tour.md"
