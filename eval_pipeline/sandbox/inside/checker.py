"""Runs the tests, in a process that never ran a model's code; they access that code's names and objects over a pipe.

The data on the pipe comes from a hostile process. Plain values are rebuilt here from a fixed set of forms (`wire.py`),
so that no method of the model's code can influence a comparison. A value without a plain form becomes a remote object
of one of the kinds in `remote.py`; tests that access anything else fail.
"""

import ast
import builtins
import json
import os
import secrets
import symtable
from typing import Any

from .exchange import ClosedError, Exchange
from .remote import exception_like, is_remote, remote
from .snippet import described
from .wire import Packed, pack, unpack

FILENAME = "<tests>"


def check(tests: str, reference: str, names: dict[str, Any], exchange: Exchange, verdict: int) -> None:
    """Runs the tests and writes the outcome: `true` as the result, or the error.

    Args:
        tests: trusted code that raises if the model's code is wrong.
        reference: trusted code that passes the tests. Its imports are done here instead of asking the model's code for
            them, and the tests may use objects of its classes.
        names: the given tables, `pd` and `np`.
        exchange: the connection to the process of the model's code.
        verdict: descriptor for the result.
    """
    try:
        exec(compile(import_statements(reference), FILENAME, "exec"), names)  # noqa: S102 - code of the suite
        classes = class_names(reference)
        link = _Link(exchange, frozenset(classes))
        names["from_code"] = link.required
        for name in asked_names(tests, names):
            found, value = link.name(name)
            if found:
                names[name] = value
        exec(compile(tests, FILENAME, "exec"), names)  # noqa: S102 - code of the suite
        told: dict[str, Any] = {"result": {"kind": "value", "value": True}}
    except CodeError as error:
        told = {"error": error.told}
    except BaseException as error:
        told = {"error": described(error, FILENAME)}
    _write(verdict, json.dumps(told).encode())


def asked_names(tests: str, known: dict[str, Any]) -> list[str]:
    """Returns, sorted, the global names that the tests use but do not define, other than the known ones."""
    top = symtable.symtable(tests, FILENAME, "exec")
    bound = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    used: set[str] = set()
    waiting = [top]
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        used |= {
            one.get_name() for one in scope.get_symbols() if one.is_referenced() and (scope is top or one.is_global())
        }
    return sorted(used - bound - known.keys() - vars(builtins).keys())


def import_statements(code: str) -> str:
    """Returns the import statements at the top level of a program."""
    found = [node for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in found)


def class_names(code: str) -> list[str]:
    """Returns the names of classes that a program defines at its top level."""
    return [node.name for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]


class CodeError(Exception):
    """The model's code did not run to its end, so nothing can be tested."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__("the code did not run")
        self.told = told


class _Link:
    """The connection that sends requests to the model's process."""

    def __init__(self, exchange: Exchange, classes: frozenset[str]) -> None:
        self._exchange = exchange
        self._classes = classes
        first = exchange.receive()
        match first:
            case {"ran": True}:
                return
            case {"error": {"types": [str(), *_] as types, "message": str() as message, "line": int() | None as line}}:
                if all(isinstance(kind, str) for kind in types):
                    raise CodeError({"types": types, "message": message, "line": line})
        raise ClosedError("the code sent what is no message")

    def name(self, name: str) -> tuple[bool, Any]:
        """Returns whether the code has a global name, and its value."""
        answer = self._ask({"op": "name", "name": name})
        if "missing" in answer:
            return False, None
        packed = answer["value"]
        if name in self._classes and isinstance(packed, dict) and packed.get("t") == "handle":
            return True, remote(self, {**packed, "r": "class"})
        return True, self.value(packed)

    def required(self, name: str) -> Any:
        """Returns, for the tests, the value that the code gave a name (even if it is a table)."""
        found, value = self.name(name)
        if not found:
            raise NameError(f"the code does not define '{name}'")
        return value

    def ask(self, op: str, handle: int, **more: Packed) -> Any:
        """Returns the result of an operation on an object in the model's process."""
        return self.value(self._ask({"op": op, "of": handle, **more})["value"])

    def call(self, handle: int, given: tuple[Any, ...], named: dict[str, Any]) -> Packed:
        """Calls an object of the model's process and returns the result.

        Arguments that the call changed are updated here.
        """
        arguments = [self.packed(one) for one in given]
        request = {"op": "call", "of": handle, "arguments": arguments}
        answer = self._ask(request | {"named": {name: self.packed(one) for name, one in named.items()}})
        values = [*given, *named.values()]
        for place, packed in answer.get("changed", []):
            _change(values[place], self.value(packed))
        return answer["value"]

    def value(self, packed: Packed) -> Any:
        """Returns the value of received data."""
        return unpack(packed, lambda told: remote(self, told))

    def packed(self, value: object) -> Packed:
        """Returns a value in the form in which it is sent."""
        return pack(value, _handle)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        token = secrets.token_hex(8)  # random, so that no answer can be prepared in advance
        self._exchange.send({"id": token, **request})
        answer: dict[str, Any] = self._exchange.receive()
        if not isinstance(answer, dict) or answer.get("id") != token:
            raise ClosedError("the code sent what is no answer")
        if "raised" in answer:
            raise exception_like(answer["raised"])
        return answer


def _handle(value: object) -> Packed:
    if is_remote(value):
        return {"t": "handle", "v": value.__dict__["_handle"]}
    raise TypeError(f"a {type(value).__name__} of the tests cannot be handed to the code")


def _change(value: Any, now: Any) -> None:
    """Gives an object the current contents of its counterpart in the other process."""
    if type(value) is not type(now):
        raise ClosedError("the code sent what is no answer")
    match value:
        case list():
            value[:] = now
        case dict() | set():
            value.clear()
            value.update(now)
        case _ if hasattr(value, "iloc"):
            value.__init__(now)
        case _ if hasattr(value, "shape"):
            value[...] = now


def _write(descriptor: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]
