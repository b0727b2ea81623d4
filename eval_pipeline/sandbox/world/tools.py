"""The tools of a world, as a model is told of them, and what is wrong with a call."""

from collections.abc import Mapping

from eval_pipeline.core.model import Json, Tool

_TYPES = {"string": ("a text", str), "integer": ("a number", int)}


def tool(name: str, description: str, required: Mapping[str, str], optional: Mapping[str, str] | None = None) -> Tool:
    """Returns a tool whose arguments are given with what they mean; one that begins with `(integer)` is a number."""
    told = {**required, **(optional or {})}
    properties: dict[str, Json] = {}
    for argument, meaning in told.items():
        kind, _, rest = (
            meaning.removeprefix("(").partition(") ") if meaning.startswith("(") else ("string", "", meaning)
        )
        properties[argument] = {"description": rest} if kind == "any" else {"type": kind, "description": rest}
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(name, description, schema)


TOOLS: Mapping[str, Tool] = {
    one.name: one
    for one in (
        tool(
            "sql",
            "Runs SQL in a database and returns the rows of the last statement.",
            {"query": "one or more statements"},
            {"database": "name of the database; default: the first"},
        ),
        tool(
            "python",
            "Runs Python in a session that keeps its variables, and returns what is printed and the value of the last "
            "expression. pandas, numpy and duckdb can be imported; there is no network.",
            {"code": "the code"},
        ),
        tool("shell", "Runs a command of sh and returns what it prints.", {"command": "the command"}),
        tool("list_files", "Lists files and folders with their sizes.", {}, {"path": "a folder; default: the top"}),
        tool(
            "read_file",
            "Returns the text of a file.",
            {"path": "the file"},
            {"offset": "(integer) the byte to begin at; default: 0"},
        ),
        tool(
            "write_file", "Writes a text file; one that exists is replaced.", {"path": "the file", "text": "its text"}
        ),
    )
}
"""The tools by name."""


def why_wrong(name: str, arguments: Mapping[str, Json], tools: Mapping[str, Tool] = TOOLS) -> str | None:
    """Returns what is wrong with a call, as a sentence for the model; None if nothing is."""
    if name not in tools:
        return f"there is no tool '{name}'; there are: {', '.join(tools)}"
    schema = tools[name].parameters
    known, required = schema.get("properties") or {}, schema.get("required") or ()
    is_closed = schema.get("additionalProperties") is False
    for argument in required:
        if argument not in arguments:
            return f"'{name}' needs the argument '{argument}'"
    for argument, given in arguments.items():
        if argument not in known and is_closed:
            return f"'{name}' has no argument '{argument}'; it has: {', '.join(known) or 'none'}"
        told = known.get(argument)
        words, kind = _TYPES.get(str(told.get("type")) if isinstance(told, dict) else "", ("", object))
        is_right = isinstance(given, kind) and not (kind is int and isinstance(given, bool))
        if not is_right and not (given is None and argument not in required):
            return f"the argument '{argument}' of '{name}' must be {words}"
    return None
