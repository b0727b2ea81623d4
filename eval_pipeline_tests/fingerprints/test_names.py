"""What is reached through names: in the module, imports of every kind, text constants."""

from pathlib import Path

import pytest

from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline_tests.fingerprints.packages import Change, reached, write

B = "def g():\n    return LIMIT\n\ndef unreached():\n    return 1\n\nLIMIT = 1\n"


@pytest.mark.parametrize(
    "source",
    [
        "from pkg.b import g\ndef f():\n    return g()\n",
        "from pkg.b import g as h\ndef f():\n    return [h for _ in ()]\n",
        "from .b import g\ndef f(x=g):\n    return x\n",
        "from . import b\ndef f():\n    return b.g()\n",
        "from pkg import b as c\ndef f():\n    return c.g()\n",
        "import pkg.b\ndef f():\n    return pkg.b.g()\n",
        "import pkg.b as c\ndef f():\n    return c.g()\n",
        "def f():\n    from pkg.b import g\n    return g()\n",
        "def f():\n    from . import b\n    return b.g()\n",
        "def f():\n    import pkg.b\n    return pkg.b.g()\n",
        "def f():\n    import pkg.b as c\n    return c.g()\n",
        "from pkg.b import *\ndef f():\n    return g()\n",
        "from pkg.c import g\ndef f():\n    return g()\n",
        "from pkg import g\ndef f():\n    return g()\n",
        "import pkg\ndef f():\n    return pkg.g()\n",
        "from pkg import c\ndef f():\n    return c.b.g()\n",
        "f = 'pkg.b:g'\n",
        "def f():\n    return load('pkg.b:g')\n",
        "from pkg.b import g\n@g\ndef f():\n    return 1\n",
        "from pkg.b import g\nf = {'x': lambda: g()}\n",
        "from pkg.b import g\nf = {}\nf['x'] = g\n",
        "from pkg.b import g\nf = []\nf.append(g)\n",
        "from pkg.b import g\nf = []\nfor x in (g,):\n    f.append(x)\n",
        "from pkg.b import g\nf, h = g, 1\n",
        "from pkg.b import g\nf: object = g\n",
        "from pkg.b import g\nf = 1\nf += g()\n",
        "from pkg.b import g\ndef f():\n    pass\nf.x = g\n",
        "from pkg.b import g\nif g:\n    f = 1\nelse:\n    f = 2\n",
        "try:\n    from pkg.b import g as f\nexcept ImportError:\n    f = None\n",
        "from pkg.b import g\nwith g() as f:\n    pass\n",
        "from pkg.b import g\nclass f(g):\n    pass\n",
        "from pkg.b import g\nclass f:\n    x = g\n",
        "from pkg.b import g\nclass f:\n    x: 'list[g]'\n",
        "from pkg.b import g\nclass f:\n    def m(self):\n        def inner(x=lambda: g):\n            return x\n",
        "from pkg.b import g\ndef f(x):\n    match x:\n        case g():\n            return 1\n",
        "from pkg.b import g\ndef f():\n    try:\n        pass\n    except g:\n        pass\n",
        "from pkg import b\ndef f():\n    return getattr(b, 'g')()\n",
        "from pkg.b import g\nfor x in (g,):\n    register(x)\nf = 1\n",
        "from typing import TYPE_CHECKING\nfrom pkg.b import g\nif TYPE_CHECKING:\n    f = 1\nelse:\n    f = g\n",
        "from pkg.b import g\ndef h(x):\n    x()\nh(g)\nf = 1\n",
        "from pkg.b import g\ndef register(x):\n    return x\nclass f:\n    pass\nregister(f, g)\n",
    ],
)
def test_every_way_to_name_something(tmp_path: Path, source: str) -> None:
    files = {"a": source, "b": B, "c": "from pkg import b\nfrom .b import g\n", "__init__": "from pkg.c import g\n"}
    found = reached(tmp_path, files)
    assert {"f", "pkg.b:g", "pkg.b:LIMIT"} <= found or ({"pkg.b:g", "pkg.b:LIMIT"} <= found and "except Imp" in source)
    assert "pkg.b:unreached" not in found


@pytest.mark.parametrize(
    "source",
    [
        "from pkg import b\ndef f(x):\n    return getattr(b, x)\n",
        "from pkg import b\ndef f(x):\n    return vars(b)[x]\n",
        "from pkg import b\ndef f(x):\n    return b.__dict__[x]\n",
        "from pkg import b\ndef f(x):\n    return x(b)\n",
        "from pkg import b\ndef f():\n    return b.not_there\n",
        "def f():\n    return 'pkg.b'\n",
        "def f(x):\n    return f'pkg.b:{x}'\n",
        "def f(x):\n    return f'pkg.{x}:g'\n",
    ],
)
def test_what_cannot_be_decided_takes_the_whole_module(tmp_path: Path, source: str) -> None:
    assert {"pkg.b:g", "pkg.b:LIMIT", "pkg.b:unreached"} <= reached(tmp_path, {"a": source, "b": B})


def test_globals_takes_the_own_module(tmp_path: Path) -> None:
    source = "def f(x):\n    return globals()[x]\n\ndef g():\n    return 1\n"
    assert reached(tmp_path, {"a": source}) == {"f", "g"}


@pytest.mark.parametrize(
    "source",
    [
        "from pkg.b import g\ndef f(g):\n    return g()\n",
        "from pkg.b import g\ndef f():\n    g = 1\n    return g\n",
        "from pkg.b import g\ndef f(xs):\n    return [g for g in xs]\n",
        "from pkg.b import g\ndef f(xs):\n    return lambda g: g\n",
        "from pkg.b import g\ndef f(x):\n    return x.g\n",
        "from pkg.b import g\ndef f(x: g) -> g:\n    return x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.b import g\ndef f(x):\n    return x\n",
        "def f():\n    return 'pkg.b:missing', 'other.b:g', 'pkg.none:g', 'pkg b:g'\n",
        "def f():\n    return 'json.decoder:JSONDecoder', 'json.decoder'\n",
        "def f():\n    '''pkg.b:g'''\n    return 1\n",
        "from pkg.b import g\ndef f():\n    return 1\nif __name__ == '__main__':\n    g()\n",
        "from pkg.b import g\ndef f():\n    return 1\ndef h():\n    return g()\n",
    ],
)
def test_what_only_has_the_same_name(tmp_path: Path, source: str) -> None:
    assert reached(tmp_path, {"a": source, "b": B}) == {"f"}


@pytest.mark.parametrize(
    "use",
    [
        "from pkg.b import __version__\ndef f():\n    return __version__\n",
        "import pkg.b as b\ndef f():\n    return b.__version__\n",
    ],
)
def test_a_release_alone_changes_nothing(change: Change, use: str) -> None:
    one = {"a": use, "b": "__version__ = '0.1.0'\n"}
    assert not change.matters(one, one | {"b": "__version__ = '0.2.0'\n"}, "pkg.a:f")
    assert change.matters(one, one | {"a": use.replace("return ", "return 'v' + ")}, "pkg.a:f")


def test_another_meaning_of_the_same_name(change: Change) -> None:
    """Both helpers are reached before and after; which of them `g` is has changed."""
    source = "from pkg.b import g\nfrom pkg.c import h\ndef f():\n    return g() - h()\n"
    other = source.replace("pkg.b", "pkg.x").replace("pkg.c", "pkg.b").replace("pkg.x", "pkg.c")
    both = "def g():\n    return 1\ndef h():\n    return 2\n"
    same = "from pkg.b import g, h\nfrom pkg.c import g as i, h as j\ndef k():\n    return f(), g, h, i, j\n"
    files = {"b": both, "c": both}
    assert change.matters({"a": source + same, **files}, {"a": other + same, **files}, "pkg.a:k")
    assert change.matters(
        "from math import ceil as g\ndef f():\n    return g(1)\n",
        "from math import floor as g\ndef f():\n    return g(1)\n",
    )


def test_statements_without_a_name_are_reached_with_anything(change: Change) -> None:
    source = "import numpy as np\nnp.seterr(all='raise')\ndef f():\n    return 1\n"
    assert change.matters(source, source.replace("raise", "ignore"))


def test_what_a_function_stores_in_the_module(tmp_path: Path) -> None:
    assert reached(tmp_path, {"a": "X = 1\ndef f():\n    global X\n    X = 2\n"}) == {"f", "X"}


def test_the_condition_of_an_import_counts(change: Change) -> None:
    source = "if LATE > 1:\n    from pkg.b import g\nelse:\n    from pkg.c import g\ndef f():\n    return g()\n"
    files = {"b": "def g():\n    return 1\n", "c": "def g():\n    return 2\n"}
    assert change.matters({"a": source, **files}, {"a": source.replace("> 1", "> 2"), **files})
    assert change.matters({"a": source, **files}, {"a": source, **files, "c": "def g():\n    return 3\n"})


def test_circles_end(tmp_path: Path) -> None:
    files = {
        "a": "from pkg.b import g\ndef f():\n    return g()\n",
        "b": "from pkg.a import f, h\ndef g():\n    return f()\n",
    }
    assert reached(tmp_path, files) == {"f", "pkg.b:g"}


def test_names_that_lead_in_circles_end(tmp_path: Path) -> None:
    files = {"a": "from pkg.b import x\ndef f():\n    return x\n", "b": "from pkg.a import x\n"}
    assert reached(tmp_path, files) == {"f"}


def test_only_what_is_reached_is_read(tmp_path: Path) -> None:
    assert reached(tmp_path, {"a": "def f():\n    return 1\n", "b": "this is no Python"}) == {"f"}


def test_plug_ins_are_followed_where_they_are_roots(tmp_path: Path) -> None:
    plugin = write(tmp_path, {"m": "from pkg.b import g\ndef h():\n    return g()\n"}, "plugin")
    package = write(tmp_path, {"b": B})
    found = Fingerprints(roots={"plugin": plugin, "pkg": package})
    assert set(found.reached("plugin.m:h")) == {"plugin.m:h"}, "pkg is a library to it"
    assert set(found.reached("plugin.m:h", "pkg.b:LIMIT")) == {"plugin.m:h", "pkg.b:g", "pkg.b:LIMIT"}
    assert set(found.reached("plugin.m:h")) == {"plugin.m:h"}, "whatever was asked before"


def test_folders_without_init_are_packages(tmp_path: Path) -> None:
    package = write(tmp_path, {"a": "from pkg.inner.m import g\ndef f():\n    return g()\n"})
    (package / "inner").mkdir()
    (package / "inner" / "m.py").write_text("def g():\n    return 1\n")
    assert set(Fingerprints(roots={"pkg": package}).reached("pkg.a:f")) == {"pkg.a:f", "pkg.inner.m:g"}


def test_stops_count_but_are_not_followed(tmp_path: Path) -> None:
    package = write(tmp_path, {"a": "from pkg.b import g\nTABLE = {'x': g}\ndef f():\n    return TABLE\n", "b": B})
    found = Fingerprints(roots={"pkg": package}, stops=["pkg.a:TABLE"])
    assert set(found.reached("pkg.a:f")) == {"pkg.a:f", "pkg.a:TABLE"}


@pytest.mark.parametrize(
    "source",
    [
        "from pkg.b import g\ndef f():\n    class Inner:\n        g = 1\n        def m(self):\n            return g\n",
        "from pkg.b import g\ndef f(xs):\n    [g for g in xs]\n    return g()\n",
    ],
)
def test_inner_scopes_do_not_hide_names_of_the_module(tmp_path: Path, source: str) -> None:
    assert reached(tmp_path, {"a": source, "b": B}) == {"f", "pkg.b:g", "pkg.b:LIMIT"}
