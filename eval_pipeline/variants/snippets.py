"""Snippets for the sandbox that make variants of tables and run code on them: the modules of `inside` as one text."""

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json

DATA_FILES = ("inside",)
"""What runs in the sandbox is sent there as text."""
_INSIDE = Path(__file__).with_name("inside")
_OURS = "eval_pipeline"
_SHUFFLE_SEED = 1
_CHECKED_KINDS = ["one row"]
"""Kinds of variants that are checked as soon as they are derived, besides the first variant."""
_PLACE = re.compile(r"@(names|hints|codes|seed|variants|checked|mutants|reference|tests|name)@")

_DERIVE = """
given = {name: globals()[name] for name in @names@}
variants = derive(given, @hints@)
codes = [compile(code, "<snippet>", "exec") for code in @codes@]
told = []
for place, variant in enumerate(variants):
    built = build(given, variant["tables"])
    found = [outcome(codes[0], built)]
    told.append(found + (otherwise(codes, built, @seed@) if not place or variant["kind"] in @checked@ else []))
sys.stdout = sys.__stdout__
result = [json.dumps(variants), told]
"""
_EXAMINE = """
given = {name: globals()[name] for name in @names@}
codes = [compile(code, "<snippet>", "exec") for code in @codes@]
variants = [build(given, recipes) for recipes in json.loads(@variants@)]
checked = [otherwise(codes, variants[place], @seed@) for place in @checked@]
mutants = [compile(code, "<snippet>", "exec") for code in @mutants@]
result = [checked, [[outcome(code, tables) for code in mutants] for tables in variants]]
sys.stdout = sys.__stdout__
"""
_INPUTS = """
reference = {"__name__": "reference", "pd": pd, "np": np}
exec(@reference@, reference)
def run_tests(tested):
    exec(@tests@, {**reference, @name@: tested})
calls = given_calls(run_tests, reference[@name@])
"""
_RUN = """
given = {name: globals()[name] for name in @names@}
result = outcomes(@codes@, given, json.loads(@variants@))
"""


def derive_snippet(names: Sequence[str], hints: Json, codes: Sequence[str]) -> str:
    """Returns a snippet that derives variants and runs the reference code on each.

    Its result is a list of the variants as JSON and, for each variant, the outcome of the first code. For a few
    variants, it is followed by those of `examine_snippet`.

    Args:
        names: names of the tables.
        hints: see `hints.read_hints`.
        codes: the reference code, then code that means the same but breaks ties in another way.
    """
    parts = {"names": [*names], "hints": hints, "codes": [*codes], "seed": _SHUFFLE_SEED, "checked": _CHECKED_KINDS}
    return _filled(_text("building", "running", "facts", "sketch", "choosing", "kinds") + _DERIVE, parts)


def examine_snippet(
    names: Sequence[str], variants: Sequence[Json], codes: Sequence[str], checked: Sequence[int], mutants: Sequence[str]
) -> str:
    """Returns a snippet that shows whether results of trusted code depend on the order of rows, or on ties.

    Its result has two parts. For each of the checked variants: the outcomes of the first code with the rows in two
    other orders, and of the further codes with the rows as they are and in the opposite order. For each variant: the
    outcome of each mutant.

    Args:
        names: names of the tables.
        variants: recipes by table.
        codes: as for `derive_snippet`.
        checked: positions of the variants to check.
        mutants: further trusted code.
    """
    parts = {"names": [*names], "variants": json_text([*variants]), "codes": [*codes], "seed": _SHUFFLE_SEED}
    return _filled(_text("building", "running") + _EXAMINE, {**parts, "checked": [*checked], "mutants": [*mutants]})


def run_snippet(names: Sequence[str], variants: Sequence[Json], codes: Sequence[str]) -> str:
    """Returns a snippet whose result is, for each variant, the outcome of each code.

    Args:
        names: names of the tables.
        variants: recipes by table.
        codes: code that may come from a model; the snippet does not contain the right result.
    """
    parts = {"names": [*names], "variants": json_text([*variants]), "codes": [*codes]}
    return _filled(_text("building", "running") + _RUN, parts)


def inputs_snippet(reference: str, tests: str, name: str) -> str:
    """Returns tests that check a function on other inputs than the given tests do.

    Args:
        reference: code whose function of that name is right.
        tests: code that calls the function.
        name: name of the function.
    """
    parts: dict[str, Json] = {"reference": reference, "tests": tests, "name": name}
    check = f"check_on_other_inputs(calls, reference[{name!r}], {name})\n"
    return _filled(_text("inputs") + _INPUTS, parts) + check


def _filled(text: str, parts: dict[str, Json]) -> str:
    return _PLACE.sub(lambda match: repr(parts[match[1]]), text)


@lru_cache(maxsize=8)
def _text(*modules: str) -> str:
    """Returns the modules as one text, without their docstrings and their imports from each other."""
    body: list[ast.stmt] = ast.parse("import json, sys").body
    for name in modules:
        tree = ast.parse((_INSIDE / f"{name}.py").read_text(encoding="utf-8"))
        body += [node for node in tree.body if not _is_left_out(node)]
    return ast.unparse(ast.Module(body, [])) + "\n"


def _is_left_out(node: ast.stmt) -> bool:
    match node:
        case ast.ImportFrom(module=str() as module):
            return module.startswith(_OURS)
        case ast.Expr(value=ast.Constant()):
            return True
    return False
