"""How many small faults the tests of `make test` find: `python -m eval_pipeline_tests.power --count 200 --seed 38`.

All mutants are compiled into the code at once, each behind a switch; `hunt` then runs the tests.
"""

import argparse
import ast
import hashlib
import json
import marshal
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline_tests.power.changes import Change, changes
from eval_pipeline_tests.support import PRODUCT, ROOT

CENTRAL = tuple(f"eval_pipeline/{name}/" for name in ("asking", "chain", "operations", "stages", "store"))
"""Half of the mutants are in these folders."""
JAILED = "/inside/"
"""Code in such folders runs in jails, where no switch is seen."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file; `tree` is all of that."""

    file: str
    tree: ast.Module
    change: Change

    @property
    def name(self) -> str:
        return f"{self.file} {self.change.name}"


def drawn(seed: int, count: int, within: tuple[str, ...] = PRODUCT) -> list[Mutant]:
    """Mutants of what is below these paths; a seed draws the same ones again where code has not changed."""
    files = [path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py"))]
    found = []
    for path in files:
        file = str(path.relative_to(ROOT))
        if JAILED not in file and file.startswith(within):
            tree = ast.parse(path.read_text())
            found += [Mutant(file, tree, change) for change in changes(tree)]
    found.sort(key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest())
    central = [one for one in found if one.file.startswith(CENTRAL)]
    others = [one for one in found if not one.file.startswith(CENTRAL)]
    return [*central[: count // 2], *others, *central[count // 2 :]][:count]


class Switches(ast.NodeTransformer):
    """Puts changes behind switches: for the identity of a node their numbers, and what takes its place."""

    def __init__(self, changed: Mapping[int, Sequence[tuple[int, ast.expr | None]]]) -> None:
        self._changed = changed

    def visit(self, node: ast.AST) -> ast.AST:
        given = self._changed.get(id(node), ())
        self.generic_visit(node)
        for number, new in given:
            on = ast.Call(ast.Name("_mutant", ast.Load()), [ast.Constant(number)], [])
            if isinstance(node, ast.stmt):
                node = ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), on), [node], []), node)
            elif isinstance(node, ast.expr) and new is not None:
                node = ast.copy_location(ast.IfExp(on, new, node), node)
        return node


def write(mutants: Sequence[Mutant], folder: Path) -> None:
    """Writes the code of each file with its mutants in it, for `switches.py`, and how they are called."""
    files = defaultdict(dict[int, list[tuple[int, ast.expr | None]]])
    trees = {}
    for number, mutant in enumerate(mutants):
        files[mutant.file].setdefault(id(mutant.change.node), []).append((number, mutant.change.new))
        trees[mutant.file] = mutant.tree
    for file, found in files.items():
        mutated = ast.fix_missing_locations(Switches(found).visit(trees[file]))
        code = marshal.dumps(compile(mutated, ROOT / file, "exec"))
        (folder / str(ROOT / file).replace("/", "|")).write_bytes(code)
    (folder / "mutants.json").write_text(json.dumps([one.name for one in mutants]))


@contextmanager
def switched(folder: Path) -> Iterator[None]:
    """Interpreters of this environment that start meanwhile and are told the folder have the switches."""
    link = Path(sysconfig.get_path("purelib")) / f"mutants-{os.getpid()}.pth"
    run = f"exec(open({str(Path(__file__).with_name('switches.py'))!r}).read(), {{}})"
    link.write_text(f"import os; os.environ.get('MUTANTS') == {str(folder)!r} and {run}\n")
    try:
        yield
    finally:
        link.unlink()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, epilog="All else is told to pytest: --tier all, for one.")
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=38)
    options.add_argument("--within", nargs="+", default=PRODUCT, help="files, or folders with a slash at the end")
    options.add_argument("--found", type=Path, help="JSON with the test that finds a mutant: it is tried before others")
    given, rest = options.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(drawn(given.seed, given.count, tuple(given.within)), folder)
        told = {"HYPOTHESIS_FACTOR": "0.25", "MUTANTS": name}
        if given.found:
            told["MUTANTS_FOUND"] = str(given.found.absolute())
        command = [sys.executable, "-m", "pytest", "--tier", "test", "-p", f"{__package__}.hunt", *rest]
        print(f"seed {given.seed}, at most {given.count} mutants", flush=True)
        with switched(folder):
            return subprocess.run(command, env=os.environ | told, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
