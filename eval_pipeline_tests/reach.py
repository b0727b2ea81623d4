"""Which tests a change can reach: `--changed-since COMMIT`, or `auto`, runs no others.

Fingerprints of the source at both commits tell which definitions changed; what leads to them, of the tests' own code,
is reached. A test begins with its function and its fixtures. What fingerprints cannot follow counts as reached.

A plug-in of pytest, loaded by its options in `pyproject.toml`.
"""

import ast
import io
import itertools
import json
import re
import subprocess
import tarfile
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eval_pipeline.fingerprints.fingerprints import FingerprintError, Fingerprints
from eval_pipeline.fingerprints.reaching import ALL, Node

ROOT = Path(__file__).resolve().parents[1]
CORE, TESTS = "eval_pipeline", "eval_pipeline_tests"
PRODUCT = (CORE, "eval_pipeline_plugins")
DECIDES_ALL = re.compile(
    r"uv\.lock|pyproject\.toml|Makefile|\.ci/.*|eval_pipeline_tests/(conftest|costs|direct|forked|pictures|reach|services|workers)\.py"
)
COSTS = f"{TESTS}/costs.json"
OF_DECORATORS = re.compile(r"eval_pipeline\.(cli|defs|definitions)\b")
"""Modules in which decorators register what nothing names: each of them is one thing, and `defs` is loaded whole."""
STARTING = {"subprocess", "multiprocessing", "runpy", "nbclient", "benchmarks", "eval_pipeline_example"}
"""Who uses them starts programs, or uses code outside of the packages: in tests that may lead to any code of ours,
elsewhere to the same module, or to what is named."""
_OURS = re.compile(
    r"""["'/]eval_pipeline(?:_plugins)?["'/]|\beval_pipeline\.__file__|\bsys\.executable\b|create_subprocess|getfixturevalue"""
)
_REGISTRY = re.compile(r'^(\w+)\b.* = Registry\(\s*"(\w+)"', re.MULTILINE)
_FILE_OF = re.compile(r"\b(\w+)\.__file__")
LAB = f"{TESTS}.support:Lab"
"""A class that can do everything: its users reach those of its members only whose names they say."""
_DATA = ":DATA_FILES contents"
_REACH = pytest.StashKey["Reach"]()


@dataclass(frozen=True)
class Reach:
    """What a change reaches.

    Attributes:
        told: for the person who runs the tests.
        places: definitions of tests and fixtures, `module:name`; None for all.
    """

    told: str
    places: frozenset[str] | None = None


def reach(since: str, root: Path = ROOT, cache: Path | None = None) -> Reach:
    """What the changes of a working tree since a commit reach."""
    base, why = _base(root) if since == "auto" else _named(root, since)
    if why:
        return Reach(f"everything runs: {why}")
    changed = _git(root, "diff", "--name-only", "--no-renames", base)
    files = {*changed, *_git(root, "ls-files", "--others", "--exclude-standard")} - {COSTS}
    begun = f"{len(files)} files changed since {base[:10]}"
    if not files:
        return Reach(begun, frozenset())
    if deciding := sorted(name for name in files if DECIDES_ALL.fullmatch(name)):
        return Reach(f"{begun}; everything runs: {deciding[0]} changed")
    with tempfile.TemporaryDirectory() as folder:
        packages = _git(root, "ls-tree", "--name-only", base, *PRODUCT, TESTS)
        packed = subprocess.run(["git", "archive", base, *packages], cwd=root, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        try:
            places = reached(Path(folder), root, files, cache or Path(folder) / "cache")
        except (FingerprintError, UnreadError) as error:
            return Reach(f"{begun}; everything runs: {error}")
    return Reach(begun, frozenset(places))


def _base(root: Path) -> tuple[str, str]:
    """The commit to compare with, or why there is none.

    On a branch it is where that left main; on main itself, the commit at which everything was last run.
    """
    head = _git(root, "rev-parse", "HEAD")
    for main in ("main", "origin/main"):
        if (found := _git(root, "merge-base", "HEAD", main)) and found != head:
            return found[0], ""
    costs = root / COSTS
    commit = str(json.loads(costs.read_text()).get("commit", "")) if costs.exists() else ""
    if not commit:
        return "", "costs.json names no commit at which everything ran"
    older = _git(root, "merge-base", "HEAD", commit)
    return commit, "" if older == [commit] else f"{commit[:10]} is no ancestor of what is checked out"


def _named(root: Path, name: str) -> tuple[str, str]:
    """The commit of a name, or why there is none."""
    found = _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return ("".join(found), "" if found else f"git knows no commit {name}")


def _git(root: Path, *arguments: str) -> list[str]:
    """Lines that git says; none if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


class UnreadError(Exception):
    """Nothing says who reads a file that changed."""


def reached(before: Path, now: Path, files: Collection[str], cache: Path | None = None) -> set[str]:
    """The tests' own definitions that lead to what changed between two trees.

    Args:
        before: folder with the packages.
        now: the same later.
        files: the names of those that changed, also of those outside of the packages.
        cache: where parsed modules are kept.
    """
    code, earlier = Code(now, cache), Code(before, cache).digests
    changed = {place for place, digest in code.digests.items() if earlier.get(place) != digest}
    gone = earlier.keys() - code.digests.keys()
    # What is reached along with another, without being named there: a method of a class that all is used of, say.
    along = {place.rpartition(".")[0] if "." in _name(place) else f"{_module(place)}:{ALL}" for place in gone}
    whole = {_module(place) for place in gone if not _name(place)}
    whole |= {_module(place) for place in changed | gone if place.endswith(_DATA)}
    seeds = {node for node in code.leads if _place(node) in changed | along or node.module in whole}
    for file in files:
        if not (file.endswith(".py") and file.startswith(tuple(f"{package}/" for package in (*PRODUCT, TESTS)))):
            seeds |= code.readers(file)
        elif not (now / file).exists():
            package = _dotted(str(Path(file).parent))
            seeds |= {node for node in code.leads if node.module == package}
    if any(_is_ours(node) for node in seeds):
        seeds |= code.starting()
    found = {_place(node) for node in _leading_to(seeds, code.edges()) if _is_in(TESTS, node.module)}
    return found | {f"{_dotted(file)}:" for file in files if file.startswith(TESTS) and file.endswith("/conftest.py")}


def _place(node: Node) -> str:
    return f"{node.module}:{node.name}"


def _module(place: str) -> str:
    return place.partition(":")[0]


def _name(place: str) -> str:
    return place.partition(":")[2]


def _dotted(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _is_in(package: str, module: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def _is_ours(node: Node) -> bool:
    return any(_is_in(package, node.module) for package in PRODUCT)


def _leading_to(seeds: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> set[Node]:
    back: dict[Node, set[Node]] = defaultdict(set)
    for one, other in edges:
        back[other].add(one)
    found, waiting = set[Node](), list(seeds)
    while waiting:
        if (node := waiting.pop()) not in found:
            found.add(node)
            waiting += back[node] - found
    return found


class Code:
    """The packages in a folder: the digests of their definitions, and what each definition leads to."""

    def __init__(self, root: Path, cache: Path | None = None) -> None:
        packages = {name: root / name for name in (*PRODUCT, TESTS)}
        self._points = _entry_points(root / "pyproject.toml")
        self._files = {
            path: _dotted(str(path.relative_to(root))) for one in packages.values() for path in one.rglob("*.py")
        }
        fingerprints = Fingerprints(cache, roots=packages)
        self.digests = fingerprints.reached(*self._files.values())
        fingerprints.save()
        ((_, reacher),) = fingerprints._reachers.values()
        self.leads = reacher._leads

    def edges(self) -> Iterator[tuple[Node, Node]]:
        """Pairs of definitions of which one leads to the other."""
        loaded = Node(f"{CORE}.definitions", ALL)
        for module in self._files.values():  # who names a package may put names of its modules together
            yield Node(module.rpartition(".")[0], ALL), Node(module, ALL)
        for node, leads in self.leads.items():
            yield from ((node, one) for one in leads.nodes if not (_place(node) == LAB and _place(one).startswith(LAB)))
            if OF_DECORATORS.match(node.module):
                whole = Node(node.module, ALL)
                yield from ((node, whole), (whole, node), (loaded, whole))
            elif leads.libraries & STARTING and _is_ours(node):
                yield node, Node(node.module, ALL)
        yield from self._by_name()
        yield from self._by_registry()

    def _by_registry(self) -> Iterator[tuple[Node, Node]]:
        """From a registry to the plug-ins of its group that come along."""
        for path, module in self._files.items():
            if _is_in(CORE, module) and "Registry(" in (text := path.read_text(encoding="utf-8")):
                for name, group in _REGISTRY.findall(text):
                    for point in self._points.get(f"eval_pipeline.{group}", {}).values():
                        yield Node(module, name), Node(_module(point), ALL)

    def _by_name(self) -> Iterator[tuple[Node, Node]]:
        """What the tests lead to by a name that fingerprints do not resolve."""
        called: dict[str, list[Node]] = defaultdict(list)
        for module in self._files.values():
            called[module.rpartition(".")[2]].append(Node(module, ALL))
        for node, leads in self.leads.items():
            if _is_in(TESTS, node.module):  # pytest lets a module import those beside it without their package
                found = [one for name in leads.libraries & called.keys() for one in called[name]]
                yield from ((node, one) for one in found if _is_in(TESTS, one.module))
        for node, text in self._saying(_FILE_OF):  # it runs that file, or reads what is beside it
            yield from ((node, one) for name in _FILE_OF.findall(text) for one in called[name])
        members: dict[str, list[Node]] = defaultdict(list)
        for node in self.leads:
            if _place(node).startswith(f"{LAB}."):
                members[node.name.partition(".")[2]].append(node)
        if members:
            said = re.compile(rf"\.({'|'.join(members)})\b")
            for node, text in self._saying(said):
                yield from ((node, one) for name in said.findall(text) for one in members[name])

    def starting(self) -> set[Node]:
        """The tests' definitions that may start any code of ours, or read its source."""
        found = {
            node for node, leads in self.leads.items() if leads.libraries & STARTING and _is_in(TESTS, node.module)
        }
        return found | {node for node, _ in self._saying(_OURS)}

    def readers(self, file: str) -> set[Node]:
        """Definitions that may read a file which is no code of the packages.

        Raises:
            UnreadError: there are none.
        """
        top, *folders = Path(file).parent.parts or ("",)
        if top in PRODUCT:
            while not (found := {node for node in self.leads if _is_in(".".join([top, *folders]), node.module)}):
                folders.pop()
            return found
        name = re.escape(Path(file).name)
        found = {node for node, _ in self._saying(re.compile(rf"\b{name}\b"))}
        if not (found and folders == ["golden"]):
            words = [re.escape(word) for word in (*([] if top == TESTS else [top]), *folders) if word]
            globs = [rf"\*{re.escape(Path(file).suffix)}"]
            said = re.compile(rf"""["'/]({"|".join([*words, *globs])})["'/]""")
            found |= {node for node, _ in self._saying(said)}
        if not found:
            raise UnreadError(f"no test names {file}")
        return found

    def _saying(self, pattern: re.Pattern[str]) -> Iterator[tuple[Node, str]]:
        """The tests' definitions whose source a pattern is found in, with that."""
        nodes: dict[str, list[Node]] = defaultdict(list)
        for node in self.leads:
            nodes[_place(node)].append(node)
        for path, module in self._files.items():
            if _is_in(TESTS, module) and pattern.search(text := path.read_text(encoding="utf-8")):
                for name, part in _parts(text):
                    if pattern.search(part):
                        yield from ((node, part) for node in nodes[f"{module}:{name}"])


def _entry_points(project: Path) -> dict[str, dict[str, str]]:
    found = tomllib.loads(project.read_text()) if project.exists() else {}
    points: dict[str, dict[str, str]] = found.get("project", {}).get("entry-points", {})
    return points


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The definitions of a module and the members of its classes, with their source."""
    lines = text.splitlines()
    waiting: list[tuple[str, ast.stmt]] = [("", one) for one in ast.parse(text).body]
    for owner, one in waiting:
        first, last = min([one.lineno, *(part.lineno for part in getattr(one, "decorator_list", ()))]), one.end_lineno
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [one.name]
        else:
            names = [
                part.id for part in ast.walk(one) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            ]
        if isinstance(one, ast.ClassDef) and not owner:
            waiting += [(f"{one.name}.", inner) for inner in one.body]
            last = one.body[0].lineno
        yield from ((owner + name, "\n".join(lines[first - 1 : last])) for name in names or [""])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--changed-since`."""
    told = "run only tests that what changed since then can reach, `auto`: since main; the tier `ci` has others too"
    parser.getgroup("reach").addoption("--changed-since", metavar="COMMIT", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Works out what the change reaches."""
    if since := config.getoption("--changed-since"):
        config.stash[_REACH] = reach(since, cache=config.cache.mkdir("reach") / "modules" if config.cache else None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves modules unimported that have no test that is reached; in the tier `ci` others run too."""
    found = config.stash.get(_REACH, None)
    if found is None or found.places is None or _of_ci(config) or collection_path.suffix != ".py":
        return None
    modules = {_module(place) for place in found.places}
    own = _dotted(str(collection_path.relative_to(ROOT)))
    above = {_dotted(str((folder / "conftest.py").relative_to(ROOT))) for folder in _folders(collection_path)}
    if modules & {own, *above}:
        return None
    text = collection_path.read_text(encoding="utf-8")
    return not any(module in text for module in modules) or None  # it may import fixtures


def _of_ci(config: pytest.Config) -> bool:
    return config.getoption("--tier", "all") == "ci"


def _folders(path: Path) -> list[Path]:
    return [folder for folder in path.parents if folder.is_relative_to(ROOT)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drops the tests that are not reached; those that are belong to the tier `ci`, whatever they cost."""
    found = config.stash.get(_REACH, None)
    if found is None:
        return
    kept = [item for item in items if found.places is None or starts_of(item) & found.places]
    told = f"reach: {found.told}" + ("" if found.places is None else f"; they reach {len(kept)} tests")
    config.get_terminal_writer().line(told)
    if _of_ci(config):
        for item in kept:
            item.add_marker("always")
    elif dropped := set(items).difference(kept):
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A change that reaches no test has not failed."""
    found = session.config.stash.get(_REACH, None)
    if found is not None and found.places is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def starts_of(item: pytest.Item) -> set[str]:
    """The places where a test begins: its function, its fixtures, what its module and the folders above say of it.

    Without fixtures that every test has, and those that only patch something for a whole folder: what they use would
    reach all of these tests. If such a fixture breaks, the tests that always run show it.
    """
    module = _dotted(str(item.path.relative_to(ROOT)))
    function = item.nodeid.split("::", 1)[1].partition("[")[0].replace("::", ".")
    found = {f"{module}:{name}" for name in (function, "pytestmark", "pytest_generate_tests")}
    for fixture in itertools.chain(*item._fixtureinfo.name2fixturedefs.values()):  # type: ignore[attr-defined]
        code = fixture.func.__code__
        patches_folder = fixture.argnames == ("monkeypatch",) and not fixture.baseid.endswith(".py")
        of_all = fixture._autouse and (fixture.baseid in {"", TESTS} or patches_folder)
        if not of_all and Path(code.co_filename).is_relative_to(ROOT):
            found.add(
                f"{_dotted(str(Path(code.co_filename).relative_to(ROOT)))}:{code.co_qualname.partition('.<locals>')[0]}"
            )
    return found | {f"{_dotted(str((folder / 'conftest.py').relative_to(ROOT)))}:" for folder in _folders(item.path)}
