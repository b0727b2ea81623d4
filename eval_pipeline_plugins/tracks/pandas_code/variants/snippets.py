"""Snippets for the sandbox that make variants of tables and run code on them: the modules of `inside` as one text."""

import __future__

import ast
import binascii
import marshal
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.variants.steps import split

DATA_FILES = ("inside",)
"""What runs in the sandbox is sent there as text."""
_INSIDE = Path(__file__).with_name("inside")
_OURS = "eval_pipeline"
_SHUFFLE_SEED = 1
_OBJECTS = 10_000
"""New objects after which a process of the sandbox looks for garbage, of which its short life leaves little."""
_PLACE = re.compile(r"@(names|hints|codes|seed|variants|parts|checked|shuffled|split|ties|reference|tests|name)@")

_DERIVE = """
given = {name: globals()[name] for name in @names@}
codes = [compile(code, "<snippet>", "exec") for code in @codes@]
variants, told = [], []
for variant, built in derive(given, @hints@):
    found = [outcome(codes[0], built)]
    if not variants:
        found += otherwise(codes, built, @seed@)
    variants.append(variant)
    told.append(found)
sys.stdout = sys.__stdout__
result = [json.dumps(variants), told]
"""
_EXAMINE = """
given = {name: globals()[name] for name in @names@}
codes, ties, variants = Codes(json.loads(@split@)), @ties@, json.loads(@variants@)
built = [*build_all(given, variants + json.loads(@parts@))]
told, orders, tied, parts, mutants, kept = Outcomes(), [], [], [], [], {}
for place in @checked@:
    tables = built[place]
    variant, back = SharedRunner(codes, tables), SharedRunner(codes, turned(tables))
    found = [back.outcome(0)]
    if place in @shuffled@:
        found.append(SharedRunner(codes, shuffled(tables, @seed@)).outcome(0))
    tied.append(told.places(some.outcome(1 + one) for one in range(ties) for some in (variant, back)))
    orders.append(told.places(found))
    kept[place] = variant
for tables in built[len(variants):]:
    part = SharedRunner(codes, tables)
    parts.append(told.places([[RAN, tables], *(part.outcome(one) for one in range(1 + ties))]))
last = range(1 + ties, len(codes.codes))
for place in range(len(variants)) if last else ():
    variant = kept.pop(place, None) or SharedRunner(codes, built[place])
    mutants.append(told.places(variant.outcome(one) for one in last))
sys.stdout = sys.__stdout__
result = [told.told, orders, tied, parts, mutants]
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

    Its result is a list of the variants as JSON and, for each variant, the outcome of the first code. For the first
    variant, it is followed by those of `examine_snippet`.

    Args:
        names: names of the tables.
        hints: see `hints.read_hints`.
        codes: the reference code, then code that means the same but breaks ties in another way.
    """
    parts = {"names": [*names], "hints": hints, "codes": [*codes], "seed": _SHUFFLE_SEED}
    modules = ["building", "running", "parts", "facts", "sketch", "choosing", "kinds"]
    if any(one["gap"] for one in hints["conditions"]):
        modules.append("edges")
    return _modules(*modules) + _filled(_DERIVE, parts)


def examine_snippet(
    names: Sequence[str],
    variants: Sequence[Json],
    codes: Sequence[str],
    mutants: Sequence[str],
    checked: Sequence[int] = (),
    shuffled: Sequence[int] = (),
    parts: Sequence[Json] = (),
) -> str:
    """Returns a snippet that shows whether results of trusted code depend on the order of rows, or on ties.

    Its result has five parts. The first are different outcomes; the others refer to them by their places. The second:
    for each of the checked variants the outcomes of the first code with the rows in other orders. The third: for each
    of them the outcomes of the further codes with the rows as they are and in the opposite order. The fourth: for each
    part of a variant its tables, and the outcomes of all codes. The fifth: for each variant the outcome of each mutant.
    Mutants run last, so that none can change what the others give.

    Args:
        names: names of the tables.
        variants: recipes by table.
        codes: as for `derive_snippet`.
        mutants: further trusted code.
        checked: positions of the variants to check, at least with the rows in the opposite order.
        shuffled: positions of those that are also checked with the rows in random order.
        parts: recipes by table of small parts of a variant.
    """
    filled: dict[str, Json] = {"names": [*names], "variants": json_text([*variants]), "ties": len(codes) - 1}
    filled |= {"split": json_text(split([*codes, *mutants], names).told()), "parts": json_text([*parts])}
    filled |= {"checked": [*checked], "shuffled": [*shuffled], "seed": _SHUFFLE_SEED}
    return _modules("building", "running", "sharing") + _filled(_EXAMINE, filled)


def run_snippet(names: Sequence[str], variants: Sequence[Json], codes: Sequence[str]) -> str:
    """Returns a snippet whose result is, for each variant, the outcome of each code.

    Args:
        names: names of the tables.
        variants: recipes by table.
        codes: code that may come from a model; the snippet does not contain the right result.
    """
    parts = {"names": [*names], "variants": json_text([*variants]), "codes": [*codes]}
    return _modules("building", "running") + _filled(_RUN, parts)


def inputs_snippet(reference: str, tests: str, name: str) -> str:
    """Returns tests that check a function on other inputs than the given tests do.

    Args:
        reference: code whose function of that name is right.
        tests: code that calls the function.
        name: name of the function.
    """
    parts: dict[str, Json] = {"reference": reference, "tests": tests, "name": name}
    check = f"check_on_other_inputs(calls, reference[{name!r}], {name})\n"
    return _modules("inputs") + _filled(_INPUTS, parts) + check


def _filled(text: str, parts: dict[str, Json]) -> str:
    return _PLACE.sub(lambda match: repr(parts[match[1]]), text)


@lru_cache(maxsize=8)
def _modules(*modules: str) -> str:
    """Returns a text that defines what the modules define, without their docstrings and imports from each other.

    It is compiled here, once, as that would take a process of the sandbox longer than much of its work, and packed, as
    a long text is slow to read there. The sandbox has the same interpreter.
    """
    body: list[ast.stmt] = ast.parse(f"import gc, json, sys\ngc.set_threshold({_OBJECTS})").body
    for name in modules:
        tree = ast.parse((_INSIDE / f"{name}.py").read_text(encoding="utf-8"))
        body += [node for node in tree.body if not _is_left_out(node)]
    flags = __future__.annotations.compiler_flag  # annotations are not evaluated
    compiled = compile(ast.Module(body, []), "<variants>", "exec", flags, optimize=2)
    packed = binascii.b2a_base64(zlib.compress(marshal.dumps(compiled)), newline=False)
    return f"import binascii, marshal, zlib\nexec(marshal.loads(zlib.decompress(binascii.a2b_base64({packed!r}))))\n"


def _is_left_out(node: ast.stmt) -> bool:
    match node:
        case ast.ImportFrom(module=str() as module):
            return module.startswith(_OURS)
        case ast.Expr(value=ast.Constant()):
            return True
    return False
