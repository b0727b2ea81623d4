"""Runs a model's code in its own process, then answers the tests' requests for its names and objects.

The tests never were in the memory of this process. The code may replace everything here, but it can only damage its own
answers, which are read as data.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from .exchange import ClosedError, Exchange
from .snippet import FILENAME, described, flush
from .wire import Packed, pack, unpack

_MOST_ITEMS = 100_000


def serve_code(code: str, names: dict[str, Any], exchange: Exchange) -> None:
    """Runs the code and answers requests until the tests have ended."""
    try:
        exec(compile(code, FILENAME, "exec"), names)  # noqa: S102 - what the jail is for
    except BaseException as error:
        flush()
        exchange.send({"error": described(error)})
        return
    flush()
    exchange.send({"ran": True})
    served = _Served(names)
    try:
        while True:
            request = exchange.receive()
            exchange.send({"id": request["id"], **served.answer(request)})
    except ClosedError:
        return


class _Served:
    """The code's objects for which the tests have handles."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._kept: list[object] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if request["op"] == "name":
                known = request["name"] in self._names
                return {"value": self._pack(self._names[request["name"]])} if known else {"missing": True}
            return self._asked(request)
        except BaseException as error:
            return {
                "raised": {
                    **described(error),
                    "types": [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__],
                }
            }

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        live = self._kept[request["of"]]
        match request["op"]:
            case "call":
                given = [self._unpack(one) for one in request["arguments"]]
                named = {name: self._unpack(one) for name, one in request["named"].items()}
                value = live(*given, **named)
                values = [*given, *named.values()]
                sent = [*request["arguments"], *request["named"].values()]
                now = [self._pack(one) for one in values]
                changed = [[place, one] for place, one in enumerate(now) if one != sent[place]]
                return {"value": self._pack(value), "changed": changed}
            case "attribute":
                return {"value": self._pack(getattr(live, request["name"]))}
            case "items":
                items = itertools.islice(live, _MOST_ITEMS)
                return {"value": self._pack(list(items))}
        raise TypeError(f"nothing is known of '{request['op']}'")

    def _pack(self, value: object) -> Packed:
        return pack(value, self._keep)

    def _unpack(self, packed: Packed) -> Any:
        return unpack(packed, lambda told: self._kept[told["v"]])

    def _keep(self, value: object) -> Packed:
        self._kept.append(value)
        kind = type(value)
        role = "function" if callable(value) else "iterator" if isinstance(value, Iterator) else "object"
        return {"t": "handle", "v": len(self._kept) - 1, "r": role, "k": [kind.__module__, kind.__qualname__]}
