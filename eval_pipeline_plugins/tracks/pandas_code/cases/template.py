"""Programs of which an answer is only a part: the answer is put in the place of a line `[insert]`."""

import re
import textwrap

PLACE = "[insert]"
_INDENTATION = "    "
_STUB = """\
_program = compile({program!r}, "<snippet>", "exec")

def run_program(**names):
    exec(_program, names)
    if "result" not in names:
        raise NameError("the program did not set `result`")
    return names["result"]
"""


def template_problem(template: str) -> str | None:
    """Returns what is wrong with a template; None if nothing is."""
    found = sum(line.strip() == PLACE for line in template.splitlines())
    return None if found == 1 else f"must have one line '{PLACE}', where the answer is put; it has {found}"


def filled(template: str, code: str) -> str:
    """Returns the program with an answer in its place.

    The answer gets the indentation that its place requires: that of the line `[insert]`, or one level more than the
    line before it if that opens a block. A model need not know how deep its code stands.
    """
    lines = template.splitlines()
    place = next(number for number, line in enumerate(lines) if line.strip() == PLACE)
    indentation = _leading(lines[place])
    before = next((line for line in reversed(lines[:place]) if line.strip()), "")
    if before.rstrip().endswith(":") and len(indentation) <= len(_leading(before)):
        indentation = _leading(before) + _INDENTATION
    lines[place] = textwrap.indent(textwrap.dedent(code), indentation) or f"{indentation}pass"
    return "\n".join(lines) + "\n"


def program_stub(template: str, code: str) -> str:
    """Returns code that only defines `run_program(**names)`: runs the filled program with these names.

    `run_program` returns what the program calls `result`. If the program does not parse, the stub fails at once.
    """
    return _STUB.format(program=filled(template, code))


def _leading(line: str) -> str:
    found = re.match(r"[ \t]*", line)
    return found[0] if found else ""
