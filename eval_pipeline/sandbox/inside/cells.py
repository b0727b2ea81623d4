"""A session of Python, in its process. Nobody trusts anything that runs there."""

import ast
import io
import sys
from typing import Any

from .child import Told
from .cut_text import cut_text
from .exchange import Exchange
from .made import MadeVariables
from .snippet import FILENAME, described, namespace


def serve_python(exchange: Exchange, most: int) -> None:
    """Runs code in a session; tells at most so many bytes of what it prints, and what variables it has made."""
    names = namespace({})
    variables = MadeVariables(names)
    while True:
        code = exchange.receive()["code"]
        printed = io.StringIO()
        sys.stdout = sys.stderr = printed
        told: Told = {}
        try:
            _execute(code, names)
        except BaseException as error:
            told["error"] = described(error)
        text = cut_text(printed.getvalue(), most)
        try:
            told["made"] = variables.of(code)
        except BaseException:  # the code may have changed what this is read with
            told["made"] = []
        exchange.send({**told, **text})


def _execute(code: str, names: dict[str, Any]) -> None:
    """Runs code and prints the value of an expression at its end, as a notebook does."""
    tree = ast.parse(code, FILENAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, FILENAME, "exec"), names)  # noqa: S102 - what the jail is for
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), FILENAME, "eval"), names)  # noqa: S307 - likewise
        if value is not None:
            print(value if isinstance(value, str) else repr(value))
