"""What may be named as a root, and what is said where there is nothing."""

import math
from functools import lru_cache, partial
from pathlib import Path

import pytest

from eval_pipeline.fingerprints.fingerprints import FingerprintError, Fingerprints
from eval_pipeline.fingerprints.places import Root
from eval_pipeline_tests.fingerprints.packages import of, write

HERE = __name__
CONSTANT = 1


def plain(x: int = 0) -> int:
    return x + CONSTANT


@lru_cache
def kept(x: int) -> int:
    return plain(x)


def outer() -> object:
    def inner() -> int:
        return CONSTANT

    return inner


class Kind:
    field = CONSTANT

    def method(self) -> int:
        return self.field

    @classmethod
    def made(cls) -> int:
        return cls.field

    def __call__(self) -> int:
        return 1


class Heir(Kind):
    field = 2


LAMBDA = lambda: 1  # noqa: E731


def _of(*roots: Root) -> set[str]:
    reached = Fingerprints().reached(*roots)
    return {place.removeprefix(f"{HERE}:") for place in reached if place.startswith(f"{HERE}:")}


def test_functions() -> None:
    assert _of(plain) == _of(f"{HERE}:plain") == {"plain", "CONSTANT"}
    assert _of(kept) == {"kept", "plain", "CONSTANT"}
    assert _of(outer()) == {"outer", "CONSTANT"}
    assert _of(partial(plain, 1)) == {"plain", "CONSTANT"}


def test_methods() -> None:
    assert _of(Kind.method) == _of(Kind().method) == {"Kind.method", "Kind.field", "CONSTANT"}
    assert _of(Kind.made) == {"Kind.made", "Kind.field", "CONSTANT"}
    assert _of(Heir().method) == _of(f"{HERE}:Heir.method") == {"Kind.method", "Heir.field"}


def test_classes_and_their_instances() -> None:
    whole = {"Kind", "Kind.field", "Kind.method", "Kind.made", "Kind.__call__", "CONSTANT"}
    assert _of(Kind) == whole
    assert _of(Kind()) == whole


def test_a_lambda_and_a_module_are_taken_whole() -> None:
    assert {"plain", "Heir.field", "test_functions"} <= _of(LAMBDA)
    assert _of(HERE) == _of(LAMBDA)


def test_what_a_partial_hands_over_counts() -> None:
    found = Fingerprints()
    one, two = found.of(partial(plain, x=1)), found.of(partial(plain, x=2))
    assert one != two
    assert _of(partial(plain, kept)) == {"plain", "kept", "CONSTANT"}
    assert _of(partial(plain, x=Kind())) >= {"plain", "Kind.__call__"}


def test_libraries_are_no_roots_of_ours() -> None:
    found = Fingerprints()
    assert set(found.reached(math.fsum)) == {"math:fsum"}
    assert found.of(math.fsum) != found.of(math.floor)


def test_order_does_not_matter_and_number_does(tmp_path: Path) -> None:
    files = {"a": "def f():\n    return 1\n\ndef g():\n    return 2\n"}
    both = of(tmp_path, files, "pkg.a:f", "pkg.a:g")
    assert both == of(tmp_path, files, "pkg.a:g", "pkg.a:f") == of(tmp_path, files, "pkg.a:g", "pkg.a:f", "pkg.a:g")
    assert both != of(tmp_path, files, "pkg.a:f")


def test_a_place_may_be_a_re_export(tmp_path: Path) -> None:
    package = write(tmp_path, {"a": "def f():\n    return 1\n", "__init__": "from pkg.a import f\n"})
    found = Fingerprints(roots={"pkg": package})
    assert found.of("pkg:f") == found.of("pkg.a:f")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("pkg.a:missing", "there is no 'missing' in the module 'pkg.a'"),
        ("pkg.a:C.missing", "there is no 'C.missing' in the module 'pkg.a'"),
        ("pkg.missing:f", "there is no source of the module 'pkg.missing'"),
        ("pkg.broken:f", "broken.py cannot be read"),
        ("pkg.wrong:f", "DATA_FILES of pkg.wrong has to be a tuple of plain texts"),
    ],
)
def test_a_wrong_place_is_told(tmp_path: Path, place: str, message: str) -> None:
    wrong = "DATA_FILES = ['x']\ndef f():\n    return 1\n"
    package = write(tmp_path, {"a": "class C: ...\n", "broken": "def f(:", "wrong": wrong})
    with pytest.raises(FingerprintError, match=message.replace(".", r"\.")):
        Fingerprints(roots={"pkg": package}).of(place)


def test_a_name_that_a_module_makes_up_takes_it_whole(tmp_path: Path) -> None:
    package = write(tmp_path, {"a": "X = 1\ndef __getattr__(name):\n    return name\n", "b": "from os import *\n"})
    found = Fingerprints(roots={"pkg": package})
    assert set(found.reached("pkg.a:made_up")) == {"pkg.a:X", "pkg.a:__getattr__"}
    assert found.of("pkg.b:path")
