"""Makes plain Python of code as notebooks and interactive sessions have it: prompts with outputs, magics, `display`."""

import ast
import re
from collections.abc import Iterator

from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse, root

# Code may be long and hostile: no expression here may scan the same text again from each character.
_PROMPT = re.compile(r"[ \t]*+(?:>>>|In \[\d*\]:)(?: |$)")
_CONTINUED = re.compile(r"[ \t]*+\.\.\.:?(?: |$)")
_OUTPUT = re.compile(r"[ \t]*+Out\[\d*\]:")
_MAGIC = re.compile(r"[ \t]*+(?:[!?]|%{1,2}[a-z_]\w*+(?:\s|$)|[\w.]++\?{1,2}\s*$|[\w, ]++= *+[!%]\w)")
_TIMED = re.compile(r"([ \t]*+)%time[ \t]++")
_OTHER_LANGUAGE = re.compile(
    r"\s*%%(?:bash|sh|script|html|javascript|js|latex|markdown|writefile|file|sql|R|perl|ruby)\b"
)
_DISPLAYS = frozenset({"display", "get_ipython"})
_MODULE = "IPython"
_MOST_SHOWN = 60


def plain_python(block: str) -> tuple[str, tuple[str, ...]]:
    """Returns the Python in a block, and a sentence for each kind of thing that was left out of it.

    Code that is no Python even without these things is returned as it is.
    """
    code, notes = block, list[str]()
    if parse(code) is None or code.startswith("In ["):  # `In [1]: x = 2` is Python, of another meaning
        for clean in (_without_prompts, _without_magics):
            code, left_out = clean(code)
            notes += _told(left_out)
        if parse(code) is None:
            return block, ()
    code, left_out = _without_displays(code)
    return code, (*notes, *_told(left_out))


def _told(left_out: list[str]) -> Iterator[str]:
    if left_out:
        first = left_out[0].strip()
        shown = first if len(first) <= _MOST_SHOWN else f"{first[:_MOST_SHOWN]}…"
        yield f"left out, as no Python of a program: `{shown}`" + (
            f" and {more} more" if (more := len(left_out) - 1) else ""
        )


def _without_prompts(code: str) -> tuple[str, list[str]]:
    """Returns the inputs of a session; what follows an input that stands beside its prompt is output."""
    lines = code.split("\n")
    if not any(_PROMPT.match(line) for line in lines):
        return code, []
    kept, left_out, is_input = list[str](), list[str](), True
    for line in lines:
        prompt = _PROMPT.match(line)
        if found := prompt or (_CONTINUED.match(line) if kept else None):
            kept.append(line[found.end() :])
            is_input = prompt is not None and not kept[-1].strip()
            left_out += [found[0].strip()] if prompt and not left_out else []
        elif is_input and not _OUTPUT.match(line):
            kept.append(line)
        else:
            is_input = False
            left_out += [line] if line.strip() else []
    return "\n".join(kept), left_out


def _without_magics(code: str) -> tuple[str, list[str]]:
    """Returns code without the commands of a notebook; the rest of a cell in another language goes too."""
    kept, left_out = list[str](), list[str]()
    lines = code.split("\n")
    for place, raw in enumerate(lines):
        line = _TIMED.sub(r"\1", raw)
        if _OTHER_LANGUAGE.match(line):
            return "\n".join(kept), left_out + lines[place:]
        if _MAGIC.match(line):
            left_out.append(line)
            line = f"{line[: len(line) - len(line.lstrip())]}pass" if line[:1].isspace() else ""
        kept.append(line)
    return "\n".join(kept), left_out


def _without_displays(code: str) -> tuple[str, list[str]]:
    """Returns code without statements that only show something in a notebook, unless it defines their function."""
    tree = parse(code) if any(name in code for name in (*_DISPLAYS, _MODULE)) else None
    if tree is None:
        return code, []
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    lines, left_out = code.split("\n"), list[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and _displays(node, defined):
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            before, after = lines[first][: node.col_offset], lines[last].encode()[node.end_col_offset :].strip()
            if not before.strip() and (not after or after.startswith(b"#")):  # nothing else stands there
                left_out.append(lines[first])
                lines[first : last + 1] = [f"{before}pass" if before else "", *[""] * (last - first)]
    return "\n".join(lines), left_out


def _displays(node: ast.stmt, defined: set[str]) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=function)):
            start = root(function)
            return isinstance(start, ast.Name) and start.id in _DISPLAYS - defined
        case ast.ImportFrom(module=str() as module):
            return module.partition(".")[0] == _MODULE
        case ast.Import(names=[ast.alias(name=name)]):
            return name.partition(".")[0] == _MODULE
    return False
