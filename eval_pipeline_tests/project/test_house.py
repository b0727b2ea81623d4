"""The house is in order: no circles of modules, and one idea for each name of a class."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for name in ("eval_pipeline", "eval_pipeline_plugins") for path in (ROOT / name).rglob("*.py"))
KNOWN_CIRCLES = frozenset(
    {
        ("eval_pipeline.core.reading.users_tables", "eval_pipeline.core.reading.excel_sheets"),
        ("eval_pipeline.core.reading.users_tables", "eval_pipeline.core.reading.parquet_rows"),
    }
)
"""Imports that close a circle: what chooses a form imports the form, late, and the form what it has in common."""


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def trees() -> dict[str, ast.Module]:
    return {module_of(path): ast.parse(path.read_bytes()) for path in FILES}


def imported(node: ast.AST, known: frozenset[str]) -> Iterator[str]:
    """Yields the modules of ours that code imports, in functions too; not what only type checkers import."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module in known:
            inner = {f"{child.module}.{alias.name}" for alias in child.names}
            yield from inner & known or {child.module}
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):  # expressions import nothing
            yield from imported(child, known)


def circles(leads: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yields circles until none is left; each is opened at the module that was found last."""
    while True:
        try:
            return TopologicalSorter(leads).prepare()
        except CycleError as error:
            circle = error.args[1][::-1]  # each before what it imports
            yield circle
            leads[circle[0]] -= {circle[1]}


def test_modules_import_each_other_in_no_circle_in_functions_neither() -> None:
    known = frozenset(trees()) - {"eval_pipeline"}  # the door, which loads what is asked for by name
    leads = {name: set(imported(tree, known)) - {name} for name, tree in trees().items()}
    assert all(to in leads[start] for start, to in KNOWN_CIRCLES), (
        "a circle that is known is gone: take it off the list"
    )
    for start, to in KNOWN_CIRCLES:
        leads[start].discard(to)
    assert list(circles(leads)) == []


@pytest.mark.parametrize(
    ("leads", "number"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, 0),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, 1),
        ({"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}, 2),
    ],
)
def test_circles_are_found(leads: dict[str, set[str]], number: int) -> None:
    assert len(list(circles(leads))) == number


def test_imports_in_functions_count_and_those_of_type_checkers_do_not() -> None:
    code = "if TYPE_CHECKING:\n    from p.a import A\ndef f():\n    from p import b\n    from p.c import C\nimport q\n"
    assert set(imported(ast.parse(code), frozenset({"p", "p.a", "p.b", "p.c"}))) == {"p.b", "p.c"}


EXACT = frozenset(
    """
    answers.other_readers core.numbers core.shown core.system.processes defs.running.told.told_events
    reports.charts.svg.crossed reports.charts.svg.drawing reports.charts.svg.plane reports.charts.svg.series
    sandbox.inside.made sandbox.sql.live.mysql_guard stages.checks.plausible table_comparison.graded
    tracks.finqa.cases.document tracks.finqa.cases.gold tracks.finqa.cases.number_places tracks.finqa.damage
    tracks.finqa.mistakes.carried tracks.finqa.mistakes.used_numbers tracks.finqa.programs.algebra
    tracks.pandas_code.prompt tracks.pandas_code.results.reading tracks.pandas_code.results.result_table
    tracks.pandas_code.robust.mending tracks.pandas_code.variants.inside.inputs tracks.sdmx.sheets.details
    tracks.sql.gold.audit tracks.sql.responses.running
    """.split()
)
"""Where digits are those of keys, coordinates, SQL, prompts, literals, a specified layout; and the formatter."""


def rounded(tree: ast.Module) -> Iterator[int]:
    """Yields the lines in which code rounds a figure by itself, by a format with a precision or in percent."""
    for node in ast.walk(tree):
        match node:
            case ast.FormattedValue(format_spec=ast.JoinedStr(values=parts)):
                form = "".join(part.value if isinstance(part, ast.Constant) else "0" for part in parts)
                if re.fullmatch(r"[^%]*\.\d+[eEfFgG]|[^%]*%", form):
                    yield node.lineno
            case ast.Constant(value=str(text)):
                if re.search(r"\{\w*:[+,]*(\.\d+[efg]?|%)\}|%[+\d]*\.\d+[efg]", text):
                    yield node.lineno


def test_figures_are_rounded_by_the_one_formatter() -> None:
    found = {name.partition(".")[2] for name, tree in trees().items() if any(rounded(tree))}
    assert found == EXACT


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ('f"{a:.2f}"', 1), ('f"{a:,.1f} {b:.0%}"', 2), ('f"{a:+.3g}"', 1), ('f"{a:%}"', 1), ('f"{a:.{n}f}"', 1),
        ('"{:.2f}".format(a)', 1), ('Form("${x:,.4f}")', 1), ('"%.3f" % a', 1), ('f"{a:,} {b:>5} {c:g} {a.b}"', 0),
    ],
)  # fmt: skip
def test_formats_that_round_are_found(code: str, number: int) -> None:
    assert len(list(rounded(ast.parse(code)))) == number


def test_what_commands_print_is_harmless_on_a_terminal() -> None:
    """All goes through `say`, or the console of `terminal`, which writes JSON itself."""
    found = {
        name
        for name, tree in trees().items()
        if name.startswith(("eval_pipeline.cli.", "eval_pipeline_plugins."))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "typer.echo", "click.echo", "Console")
    }
    assert found == {"eval_pipeline.cli.saying", "eval_pipeline.cli.terminal"}


def test_a_name_of_a_class_has_one_meaning() -> None:
    number = Counter(
        node.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")  # those are known in one module only
    )
    assert not {name for name, times in number.items() if times > 1}
