"""Where a definition stands does not count; what it leads to does, through circles too."""

from pathlib import Path
from random import Random
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.fingerprints import fingerprints
from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline.fingerprints.graphs import digests
from eval_pipeline_tests import same_code
from eval_pipeline_tests.fingerprints.packages import Change, write

CLASS = "class A:\n    x: int = 1\n    def m(self):\n        return self.n()\n    def n(self):\n        return {}\n"
CIRCLE = """
    def g(x):
        return x and h(x - 1)
    def h(x):
        return x and {}(x - 1)
    def k(x):
        return x and g(x - 1) or {}
"""


USES = "def f():\n    return g()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": "from pkg.b import g\n" + USES, "b": "{}"}, {"a": "{}\n" + USES}),
        ({"a": "from pkg.b import g\n" + USES, "b": "{}"}, {"a": "from .c import g\n" + USES, "c": "{}"}),
        (
            {"a": "def f():\n    from pkg.b import g\n    return g()\n", "b": "{}"},
            {"a": "def f():\n    from .c.d import g\n    return g()\n", "c/d": "{}"},
        ),
    ],
    ids=["into the module", "to another", "to another, imported late"],
)
@pytest.mark.parametrize(
    "what",
    [
        pytest.param("def g():\n    return {}\n", id="function"),
        pytest.param(CLASS.replace("A", "g"), id="class"),
        pytest.param("from math import fsum\ng = lambda: fsum([{}])\n", id="library"),
        pytest.param(dedent(CIRCLE).replace("{}", "k", 1), id="circle"),
    ],
)
def test_a_move_does_not_count_and_a_change_on_the_way_does(
    change: Change, before: dict[str, str], after: dict[str, str], what: str
) -> None:
    def filled(files: dict[str, str], number: int) -> dict[str, str]:
        return {name: text.replace("{}", what.format(number)) for name, text in files.items()}

    assert not change.matters(filled(before, 1), filled(after, 1))
    assert change.matters(filled(before, 1), filled(after, 2))


def test_where_the_root_stands_does_not_count(change: Change) -> None:
    assert change._digest({"a": "def f():\n    return 1\n"}, ("pkg.a:f",)) == change._digest(
        {"b": "def f():\n    return 1\n"}, ("pkg.b:f",)
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            {"a": dedent(CIRCLE).format("g", 1) + "def f():\n    return g(3)\n"},
            {"a": dedent(CIRCLE).format("k", 1) + "def f():\n    return g(3)\n"},
            id="a circle leads elsewhere",
        ),
        pytest.param(
            {"a": "def f():\n    from pkg.b import g\n    from pkg.c import g as h\n    return g(), h()\n"},
            {"a": "def f():\n    from pkg.c import g\n    from pkg.b import g as h\n    return g(), h()\n"},
            id="two of one name in a function",
        ),
        pytest.param(
            {"a": "from pkg.b import g\nfrom pkg.c import g as h\ndef f():\n    return g(), h()\n"},
            {"a": "from pkg.c import g\nfrom pkg.b import g as h\ndef f():\n    return g(), h()\n"},
            id="two of one name in a module",
        ),
        pytest.param(
            {"a": "from math import floor as g\ndef f():\n    return g(1)\n"},
            {"a": "from numpy import floor as g\ndef f():\n    return g(1)\n"},
            id="another library",
        ),
        pytest.param(
            {"a": "from pkg.d import f\n", "d": "HERE = __file__\ndef f():\n    return HERE\n"},
            {"a": "from pkg.e import f\n", "e": "HERE = __file__\ndef f():\n    return HERE\n"},
            id="a module that asks where it is",
        ),
    ],
)
def test_another_meaning_counts(change: Change, before: dict[str, str], after: dict[str, str]) -> None:
    files = {"b": "def g():\n    return 1\n", "c": "def g():\n    return 2\n"}
    assert change.matters({**files, **before}, {**files, **after})


Graph = list[tuple[str, list[tuple[str, int]]]]
GRAPHS = st.integers(1, 7).flatmap(
    lambda size: st.lists(
        st.tuples(
            st.sampled_from("xy"), st.lists(st.tuples(st.sampled_from("lr"), st.integers(0, size - 1)), max_size=3)
        ),
        min_size=size,
        max_size=size,
    )
)


def _alike(graph: Graph) -> list[int]:
    """The coarsest partition in which alike nodes hold the same and lead to alike nodes, by plain refinement."""
    kinds = [0] * len(graph)
    for _ in graph:
        seen = [(own, frozenset((label, kinds[to]) for label, to in edges)) for own, edges in graph]
        kinds = [sorted(set(seen), key=repr).index(one) for one in seen]
    return kinds


@given(GRAPHS, st.randoms(use_true_random=False))
def test_digests_are_equal_for_nodes_that_are_alike(graph: Graph, rng: Random) -> None:
    known: dict[int, str] = {}
    order = list(range(len(graph)))
    rng.shuffle(order)
    digests(order, lambda node: graph[node][0], lambda node: set(graph[node][1]), known)
    alike = _alike(graph)
    assert all(alike[one] == alike[other] for one in order for other in order if known[one] == known[other])
    again: dict[int, str] = {}
    for node in order:
        digests([node], lambda node: graph[node][0], lambda node: set(graph[node][1]), again)
    assert again == known
    renamed: dict[tuple[int], str] = {}
    digests(
        [(node,) for node in order],
        lambda node: graph[node[0]][0],
        lambda node: {(label, (to,)) for label, to in graph[node[0]][1]},
        renamed,
    )
    assert {node: renamed[node,] for node in order} == known


def test_a_root_that_is_vouched_for_keeps_its_fingerprint_until_anything_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fingerprint(name: str, class_name: str, value: int) -> tuple[str, str]:
        text = f"class {class_name}:\n    x = {value}\ndef f():\n    return {class_name}().x\n"
        found = Fingerprints(roots={"pkg": write(tmp_path / name, {"a": text})})
        code = found.of("pkg.a:f").code
        (digest,) = (
            digest
            for _, reacher in found._reachers.values()
            for node, digest in reacher._digests.items()
            if node.name == "f"
        )
        return code, digest

    before, then = fingerprint("before", "Pair", 1)
    renamed, now = fingerprint("renamed", "NumberPair", 1)
    assert renamed != before
    monkeypatch.setattr(fingerprints, "_same", lambda: same_code.pairs({"f": then}, {"f": now}, {}))
    assert fingerprint("again", "NumberPair", 1) == (before, now)
    assert fingerprint("changed", "NumberPair", 2)[0] not in {before, renamed}
    assert fingerprint("as it was", "Pair", 1) == (before, then)


def test_what_is_vouched_for_leads_to_the_first_digest_and_never_makes_two_roots_one() -> None:
    assert same_code.pairs({"f": "b", "g": "c"}, {"f": "d", "g": "c", "new": "e"}, {"b": "a"}) == {"d": "a"}
    with pytest.raises(ValueError, match="roots that are gone: g"):
        same_code.pairs({"f": "a", "g": "b"}, {"f": "a"}, {})
    with pytest.raises(ValueError, match="is alike with a root from which it differed"):
        same_code.pairs({"f": "a", "g": "b"}, {"f": "c", "g": "c"}, {})
