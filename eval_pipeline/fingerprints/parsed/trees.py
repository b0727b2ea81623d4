"""Digests source code by its syntax tree, leaving out what has no effect; the same in every version of Python.

`ast.dump` and `ast.unparse` change between versions of Python, so the tree is written out here, field by field.
Docstrings and other constants that stand alone, `pass`, annotations of parameters, results and variables, and code that
only type checkers run are left out. Annotations in class bodies are kept, because pydantic and dataclasses use them.
Of `from module import name`, the module is left out: what the name refers to counts, not where it stands.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "returns", "type_ignores"})
_IMPORTED = "ImportFrom(names="


def digest(nodes: Sequence[ast.AST], *, in_class: bool = False) -> str:
    """Returns the digest of some nodes, 16 hexadecimal digits; `in_class`: they are statements of a class body."""
    out: list[str] = []
    for node in nodes:
        _write(node, out, in_class)
    if _IMPORTED in out:
        imports = [(alias.name, module) for module, aliases in imported_from(nodes) for alias in aliases]
        if len({name for name, _ in imports}) < len(set(imports)):  # the name alone does not tell which one is meant
            out += [f"{name} of {module};" for name, module in imports]
    return text_digest("".join(out))


def imported_from(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, list[ast.alias]]]:
    """Yields the module (with leading dots) and the names of every `from module import name`, in order."""
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.ImportFrom):
                yield "." * one.level + (one.module or ""), one.names


def text_digest(text: str) -> str:
    """Returns the digest of a text, 16 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def does_nothing(statement: ast.stmt) -> bool:
    """Whether a statement has no effect at run time: a docstring, `pass`, `...`, or code for type checkers."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.If) and is_type_checking(statement.test) and not statement.orelse


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING`."""
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def _write(value: Any, out: list[str], in_class: bool) -> None:
    special = _SPECIAL.get(type(value))
    if special is not None:
        special(value, out, in_class)
    elif isinstance(value, ast.AST):
        _write_fields(value, out, in_class)
    elif isinstance(value, list):
        out.append("[")
        for item in value:
            if not (isinstance(item, ast.stmt) and _is_left_out(item, in_class)):
                _write(item, out, in_class)
        out.append("]")
    else:
        out.append(_plain(value))


def _write_fields(node: ast.AST, out: list[str], in_class: bool, left_out: str = "") -> None:
    out.append(type(node).__name__ + "(")
    for field in node._fields:
        value = getattr(node, field, None)
        if value is None or value == [] or field in _LEFT_OUT or field == left_out:
            continue
        out.append(field + "=")
        _write(value, out, in_class)
    out.append(")")


def _is_left_out(statement: ast.stmt, in_class: bool) -> bool:
    # In a function, `x: int` only declares the type; in a class, it is a field.
    return does_nothing(statement) or (
        isinstance(statement, ast.AnnAssign) and statement.value is None and not in_class
    )


def _constant(node: ast.Constant, out: list[str], in_class: bool) -> None:
    out.append("C")
    out.append(_plain(node.value))


def _plain(value: object) -> str:
    """Returns a constant as text. `repr` is not used, since its escapes depend on the Unicode version of Python."""
    if isinstance(value, str):
        return f"s{len(value)}:{value}"
    if isinstance(value, bool) or value is None or value is Ellipsis:
        return f"k{value};"
    if isinstance(value, int):
        return f"i{value:x};"
    if isinstance(value, float):
        return f"f{value.hex()};"
    if isinstance(value, complex):
        return f"c{value.real.hex()},{value.imag.hex()};"
    assert isinstance(value, bytes)
    return f"b{value.hex()};"


def _joined(node: ast.JoinedStr, out: list[str], in_class: bool) -> None:
    """Writes an f-string with adjacent constant parts joined, because versions of Python split them differently."""
    parts = _merged(node.values)
    if not parts or (len(parts) == 1 and isinstance(parts[0], str)):
        out.append("C" + _plain(parts[0] if parts else ""))
        return
    out.append("JoinedStr[")
    for part in parts:
        _write(part, out, in_class)
    out.append("]")


def _merged(values: Sequence[ast.expr]) -> list[ast.expr | str]:
    parts: list[ast.expr | str] = []
    for value in values:
        if not isinstance(value, ast.Constant):
            parts.append(value)
        elif parts and isinstance(last := parts[-1], str):
            parts[-1] = last + str(value.value)
        elif value.value != "":
            parts.append(str(value.value))
    return parts


def _formatted(node: ast.FormattedValue, out: list[str], in_class: bool) -> None:
    specified = isinstance(node.format_spec, ast.JoinedStr) and _merged(node.format_spec.values)
    _write_fields(node, out, in_class, "" if specified else "format_spec")


def _argument(node: ast.arg, out: list[str], in_class: bool) -> None:
    out.append(f"arg({node.arg})")


def _annotated(node: ast.AnnAssign, out: list[str], in_class: bool) -> None:
    """Writes `x: int = 1` like `x = 1`, except for fields of a class."""
    if in_class:
        _write_fields(node, out, in_class)
        return
    out.append("Assign(targets=[")
    _write(node.target, out, in_class)
    out.append("]value=")
    _write(node.value, out, in_class)
    out.append(")")


def _imported(node: ast.ImportFrom, out: list[str], in_class: bool) -> None:
    out.append(_IMPORTED)
    _write(node.names, out, in_class)
    out.append(")")


def _function(node: ast.AST, out: list[str], in_class: bool) -> None:
    _write_fields(node, out, in_class=False)


def _class(node: ast.ClassDef, out: list[str], in_class: bool) -> None:
    _write_fields(node, out, in_class=True)


_SPECIAL: dict[type, Callable[[Any, list[str], bool], None]] = {
    ast.Constant: _constant,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
    ast.arg: _argument,
    ast.AnnAssign: _annotated,
    ast.ImportFrom: _imported,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _function,
    ast.ClassDef: _class,
}
