"""What is reached in classes: whole ones by name, single members through `self` and through annotations."""

from pathlib import Path

import pytest

from eval_pipeline_tests.fingerprints.packages import Change, reached

TURNS = """
from dataclasses import dataclass
from pkg.base import Base

SIZE, OTHER, START = 1, 2, 3

class Turns(Base):
    size = SIZE
    other = OTHER
    def __init__(self, given):
        self.given = given
        self.start = START
    def __len__(self):
        return self.size
    @property
    def column(self):
        return self.inherited() + self.start
    def unused(self):
        return self.other
    def more(self) -> "Turns":
        return self
    @classmethod
    def made(cls):
        return cls.size
    def above(self):
        return super().over()
    def over(self):
        return 1
"""
BASE = "class Base:\n    def inherited(self):\n        return self.size\n    def over(self):\n        return 2\n"
COLUMN = {"Turns.column", "Turns.size", "Turns.start", "SIZE", "START", "base:Base.inherited"}


def _reached(tmp_path: Path, source: str, *roots: str) -> set[str]:
    found = reached(tmp_path, {"a": source, "turns": TURNS, "base": BASE}, *roots)
    return {place.removeprefix("pkg.turns:").removeprefix("pkg.") for place in found}


@pytest.mark.parametrize(
    "source",
    [
        "def f(turns: Turns):\n    return turns.column\n",
        "def f(turns: 'Turns'):\n    return turns.column\n",
        "def f(turns: Turns | None):\n    return turns.column\n",
        "def f(turns: 'Turns | None' = None):\n    return turns.column\n",
        "def f(*, turns: Optional['Turns']):\n    return turns.column\n",
        "def f(all: Sequence[Turns]):\n    return [turns.column for turns in all]\n",
        "def f(all: Mapping[str, Turns]):\n    for name, turns in sorted(all.items()):\n        return turns.column\n",
        "def f(x):\n    turns: Turns = x\n    return turns.column\n",
        "def f(turns: Turns):\n    other = turns\n    return other.column\n",
        "def f(turns: Turns):\n    return turns.more().column\n",
        "def f(turns: Turns):\n    def inner():\n        return turns.column\n    return inner\n",
        "def f(all: list[Turns]):\n    return sorted(all, key=lambda turns: turns.column)\n",
        "def f(turns: Turns):\n    return getattr(turns, 'column')\n",
        "def f(x):\n    return cast('Turns', x).column\n",
        "Alias = Sequence[Turns]\ndef f(all: Alias):\n    return all[0].column\n",
        "def f(all: Iterator[Turns]):\n    with next(all) as turns:\n        return turns.column\n",
    ],
)
def test_annotated_variables_reach_single_members(tmp_path: Path, source: str) -> None:
    head = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.turns import Turns\n"
    assert _reached(tmp_path, head + source) - {"a:Alias", "a:f", "f", "Alias", "Turns.more", "Turns.__len__"} == COLUMN


@pytest.mark.parametrize("body", ["len(turns)", "[x for x in turns]", "turns + 1", "turns.more() == 1", "g(x=turns)"])
def test_operators_are_members_too(tmp_path: Path, body: str) -> None:
    source = f"from pkg.turns import Turns\ndef f(turns: Turns):\n    return {body}\n"
    assert {"Turns.__len__", "SIZE"} <= _reached(tmp_path, source)
    assert "Turns.__init__" not in _reached(tmp_path, source)


def test_fields_of_dataclasses_lead_on(tmp_path: Path) -> None:
    source = """
    from dataclasses import dataclass
    from pkg.turns import Turns
    @dataclass
    class Pair:
        turns: Turns
        second: int = 0
    def f(pair: Pair):
        return pair.turns.column
    """
    assert _reached(tmp_path, source) == {"f", "Pair.turns", *COLUMN}


def test_a_root_that_is_a_method_takes_what_it_uses(tmp_path: Path) -> None:
    assert _reached(tmp_path, "", "pkg.turns:Turns.unused") == {"Turns.unused", "Turns.other", "OTHER"}
    assert _reached(tmp_path, "", "pkg.turns:Turns.made") == {"Turns.made", "Turns.size", "SIZE"}
    assert _reached(tmp_path, "", "pkg.turns:Turns.above") == {"Turns.above", "base:Base.over"}


def test_static_methods_have_no_self(tmp_path: Path) -> None:
    source = (
        "class C:\n    x = 1\n    @staticmethod\n    def m(c):\n        return c.x\n    def n(c):\n        return c.x\n"
    )
    assert reached(tmp_path, {"a": source}, "pkg.a:C.m") == {"C.m"}
    assert reached(tmp_path, {"a": source}, "pkg.a:C.n") == {"C.n", "C.x"}


def test_an_inherited_method_uses_what_the_heir_overrides(tmp_path: Path) -> None:
    found = _reached(tmp_path, "", "pkg.turns:Turns.inherited")
    assert found == {"base:Base.inherited", "Turns.size", "SIZE"}


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return Turns(x)\n",
        "def f(x):\n    return isinstance(x, Turns)\n",
        "class f(Turns):\n    pass\n",
        "class f:\n    field: list[Turns]\n",
        "def f(turns: Turns, name):\n    return getattr(turns, name)\n",
    ],
)
def test_a_class_that_is_named_is_taken_whole(tmp_path: Path, source: str) -> None:
    found = _reached(tmp_path, "from pkg.turns import Turns\n" + source)
    members = {"size", "other", "__init__", "__len__", "column", "unused", "more", "made", "above", "over"}
    assert {"Turns", "base:Base", "base:Base.over", "OTHER", *(f"Turns.{name}" for name in members)} <= found


def test_protocols_are_not_followed(tmp_path: Path) -> None:
    source = """
    from typing import Protocol
    class Shape(Protocol):
        sides: int
        def area(self): ...
    class Box:
        shape: Shape
    def f(shape: Shape):
        return shape.area()
    def g():
        return Box
    """
    assert reached(tmp_path, {"a": source}) == {"f"}
    assert reached(tmp_path, {"a": source}, "pkg.a:g") == {"g", "Box", "Box.shape"}


def test_annotations_of_callables_are_not_followed(tmp_path: Path) -> None:
    source = "from pkg.turns import Turns\nclass f:\n    rows: Callable[[Turns], None]\n"
    assert _reached(tmp_path, source) == {"f", "f.rows"}


def test_what_methods_bind_belongs_to_a_whole_class(tmp_path: Path) -> None:
    source = "class C:\n    def __init__(self):\n        self.x = 1\n"
    assert reached(tmp_path, {"a": source}, "pkg.a:C") == {"C", "C.__init__", "C.x"}


CLASS = """\
import enum
class f(enum.Enum):
    a = 1
    b = 2
    def m(self):
        return 1
    def n(self):
        return 2
"""


def test_order_of_fields_counts_and_of_methods_not(change: Change) -> None:
    fields = CLASS.replace("    a = 1\n    b = 2\n", "    b = 2\n    a = 1\n")
    methods = CLASS.replace("    def m(self):\n        return 1\n", "") + "    def m(self):\n        return 1\n"
    assert change.matters(CLASS, fields)
    assert not change.matters(CLASS, methods)


@pytest.mark.parametrize(
    "after",
    [
        CLASS.replace("enum.Enum", "enum.StrEnum"),
        CLASS.replace("class f", "@enum.unique\nclass f"),
        CLASS.replace("enum.Enum", "enum.Enum, boundary=1"),
        CLASS.replace("a = 1", "a = 3"),
        CLASS.replace("return 2", "return 3"),
        CLASS + "f.c = 1\n",
        CLASS + "    print(1)\n",
        CLASS + "    def o(self): ...\n",
    ],
)
def test_every_part_of_a_class_counts(change: Change, after: str) -> None:
    assert change.matters(CLASS, after)


def test_what_methods_bind(change: Change) -> None:
    source = """
    START = 1
    class C:
        def __init__(self, given):
            worked = given + 1
            self.start = START
            self.given = given
            self.worked = worked
        def m(self):
            return self.start
        def n(self):
            return self.worked
        def o(self):
            self.start
    """
    assert change.matters(source, source.replace("START = 1", "START = 2"), "pkg.a:C.m")
    assert change.matters(source, source.replace("self.start = START", "self.start = 5"), "pkg.a:C.m")
    assert not change.matters(source, source.replace("given + 1", "given + 2"), "pkg.a:C.m")
    assert change.matters(source, source.replace("given + 1", "given + 2"), "pkg.a:C.n")


def test_members_that_the_body_of_a_class_reads(tmp_path: Path) -> None:
    assert reached(tmp_path, {"a": "class C:\n    x = 1\n    y = x + 1\n    z = 2\n"}, "pkg.a:C.y") == {"C.y", "C.x"}


def test_the_default_of_what_methods_bind_counts(change: Change) -> None:
    source = "class C:\n    x = 1\n    def m(self):\n        return self.x\n    def n(self):\n        self.x = 2\n"
    assert change.matters(source, source.replace("x = 1", "x = 3"), "pkg.a:C.m")


def test_a_base_that_several_share_comes_last(tmp_path: Path) -> None:
    source = "class A:\n    def m(self): ...\nclass B(A): ...\nclass C(A):\n    def m(self): ...\nclass D(B, C): ...\n"
    assert reached(tmp_path, {"a": source}, "pkg.a:D.m") == {"C.m"}


def test_self_as_an_annotation_is_the_heir(tmp_path: Path) -> None:
    source = """
    from typing import Self
    class A:
        def me(self) -> Self:
            return self
        def m(self): ...
    class B(A):
        def m(self): ...
    def f(b: B):
        return b.me().m()
    """
    assert reached(tmp_path, {"a": source}) == {"f", "A.me", "B.m"}


@pytest.mark.parametrize("body", ["len(heir)", "heir.m()"])
def test_another_base_counts_though_all_is_reached_anyway(change: Change, body: str) -> None:
    base = "class {0}:\n    def m(self):\n        return {1}\n    def __len__(self):\n        return {1}\n"
    use = f"def g():\n    return A, B\ndef f(heir: Heir):\n    return g(), {body}\n"
    source = base.format("A", 1) + base.format("B", 2) + "class Heir(A): ...\n" + use
    assert change.matters(source, source.replace("Heir(A)", "Heir(B)"))
