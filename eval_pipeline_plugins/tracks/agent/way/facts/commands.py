"""The facts of commands of the shell; see `told`."""

import re

from eval_pipeline_plugins.tracks.agent.way.facts.told import Told, plain

_EITHER = re.compile(r"\\?\|")
_TESTS = re.compile(
    r"""\$\d+\s{0,9}(==|!=|<=?|>=?)\s{0,9}(?:"([^"]*)"|(-?\d[\d.]*))|(!?)~?\s{0,9}/((?:[^/\\\n]|\\.){1,300})/"""
)
_REST = re.compile(r'"[^"]*"|\$\w+|\bN[RF]\b\s*[<>=!]+\s*\d+')
"""What is no figure in a program of awk: texts, columns and which line it is."""
_SIGNS = {"==": "=", "!=": "<>"}


def of_command(words: tuple[str, ...]) -> Told:
    """Yields what a command keeps of lines and computes: `grep -e X`, `awk '/X/ {s += $2}'`, `sort -u`."""
    program, rest = words[0].rpartition("/")[2] if words else "", words[1:]
    if program in ("grep", "egrep", "fgrep", "rg"):
        short = {letter for one in rest if one[:1] == "-" and one[1:2] != "-" for letter in one[1:]}
        kept = (
            one for at, one in enumerate(rest) if rest[at - 1 : at] == ("-e",) or (one[:1] != "-" and not _is_path(one))
        )
        told = (_bare(part) for one in kept for part in _EITHER.split(one.strip("()")))
        yield from (("where", f" {'not like' if 'v' in short else 'like'} {one}") for one in told if one)
        yield from [("aggregate", "count")] if "c" in short else []
    elif program in ("awk", "gawk", "mawk"):
        code = next((one for one in rest if "{" in one or "$" in one or "/" in one[:1]), "")
        yield from _of_awk(code)
    elif program in ("sed", "cut"):
        yield from (("where", f"{program} {one}") for one in rest if one[:1] != "-" and not _is_path(one))
    elif program == "uniq" or (program == "sort" and "-u" in rest):
        yield "distinct", "distinct"
    elif program == "wc":
        yield "aggregate", "count"
    elif program == "sort":
        yield "sort", "sort"
    elif program in ("head", "tail"):
        yield "limit", "".join(rest[:1])


def _of_awk(code: str) -> Told:
    for one in _TESTS.finditer(code):
        if one[1]:
            yield "where", f" {_SIGNS.get(one[1], one[1])} {plain(one[2] or one[3])}"
        else:
            yield from (
                ("where", f" {'not like' if one[4] else 'like'} {_bare(part)}") for part in _EITHER.split(one[5])
            )
    left = _REST.sub(" x ", _TESTS.sub(" ", code))
    if "+=" in left:
        yield "aggregate", "sum"
    elif "++" in left:
        yield "aggregate", "count"
    if re.search(r"\bint\(", left):
        yield "round", "0"
    for sign in re.findall(r"(?<![+*/-])[*/](?!=)", left):
        yield "operator", sign
    yield from (("factor", plain(one)) for one in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", left))


def _bare(pattern: str) -> str:
    return pattern.strip().lstrip("^").rstrip("$")


def _is_path(word: str) -> bool:
    return "/" in word or "." in word[-5:]
