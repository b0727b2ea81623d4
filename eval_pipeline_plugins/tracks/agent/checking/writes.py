"""Which files a program of Python or a command of the shell writes, moves or removes, as far as it names them.

What is only read is never told, nor what is outside of the world or named by a value.
"""

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import pairwise

from eval_pipeline_plugins.tracks.agent.checking.shell import SIGNS, commands_in, without_documents

_WORLD = "/world"
_LONGEST = 4096
"""Characters of the longest path."""
_RUNS = re.compile(r"\b(?:python[\d.]*|bash|sh)\b[^\n|;&]*$")
_ALL = frozenset({"rm", "unlink", "shred", "truncate", "tee", "mv"})
"""Commands that change each file that they name."""
_LAST = frozenset({"cp", "install", "ln", "rsync"})
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
_IN_PLACE = re.compile(r"-(?![-ImM])\w*i|--in-place")
_INTO, _INTO_NEXT = "--target-directory=", re.compile(r"-\w*t")
_SET = re.compile(r"\w+=")
_ON_PATH = frozenset({"write_text", "write_bytes", "unlink", "rmdir", "rename", "replace"})
_TO_FILE = frozenset({"to_csv", "to_parquet", "to_excel", "to_json", "to_feather", "to_pickle"})
_OF_MODULES = {
    "os": {"remove": 1, "unlink": 1, "truncate": 1, "rename": 2, "replace": 2},
    "shutil": {"rmtree": 1, "move": 2, "copy": -1, "copy2": -1, "copyfile": -1, "copytree": -1},
}
"""Functions that change files, with how many of their first arguments these are; -1: the second alone."""


def written_by(text: str, program: ast.Module | None) -> Iterator[str]:
    """Yields the paths within the world that a text writes, moves or removes, if that is known of what it says.

    Args:
        text: a command of the shell, if it is no program.
        program: the program.
    """
    found = _of_shell(text) if program is None else _of_program(program)
    with suppress(RecursionError):  # a model nests as deeply as it likes
        yield from (path for path in map(_within, found) if path)


def _within(path: str) -> str:
    """Returns a path as one within the world; nothing for one outside, or that nobody knows."""
    is_outside = path.startswith("/") and not f"{path}/".startswith(f"{_WORLD}/")
    if is_outside or len(path) > _LONGEST or any(sign in path for sign in "$`~{"):
        return ""
    return normal_path(path)


def normal_path(path: str) -> str:
    """Returns a path of a tool as one within the world."""
    parts: list[str] = []
    for part in path.removeprefix("/world").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def meets_one_of(path: str, patterns: Collection[str]) -> bool:
    """Returns whether a path, which may be a folder or a pattern of a shell, is or holds one of some files."""
    path = normal_path(path)
    return any(
        fnmatchcase(path, one)
        or one.startswith(f"{path}/")
        or (fnmatchcase(one, path) and one.count("/") == path.count("/"))
        for one in patterns
    )


def _of_shell(text: str) -> Iterator[str]:
    text, documents = without_documents(text)
    for one in documents:
        runs = _RUNS.search(one.command)
        if runs is not None:
            yield from _of_program(program_of(one.text)) if runs[0].startswith("python") else _of_shell(one.text)
    folder = ""
    with suppress(ValueError):  # a quote that is not closed
        for words in commands_in(text):
            if words[:1] == ["cd"]:
                folder = _in(folder, words[1]) if len(words) > 1 else "/"
            elif words == [")"]:
                folder = ""
            else:
                yield from (_in(folder, path) for path in _of_command(words))


def _in(folder: str, path: str) -> str:
    return path if path.startswith(("/", "$", "~")) or not folder else f"{folder}/{path}"


def _of_command(words: Sequence[str]) -> Iterator[str]:
    rest: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if ">" in before and set(before) <= SIGNS:
            yield "" if before.endswith("&") or word.isdigit() else word
        elif not (set(word) <= SIGNS or (not rest and (_SET.match(word) or word in ("sudo", "then", "do", "else")))):
            rest.append(word)
    if not rest:
        return
    name, given = rest[0].rpartition("/")[2], [one for one in rest[1:] if not one.startswith("-")]
    options = [one for one in rest[1:] if one.startswith("-")]
    if name in _ALL or (name in ("sed", "perl") and any(map(_IN_PLACE.match, options))):
        yield from given
    yield from _of_copies(name, rest[1:], given) if name in (*_LAST, "mv") else ()
    yield from given[:1] if name == "find" and "-delete" in options else ()
    yield from (one.removeprefix("of=") for one in given if name == "dd" and one.startswith("of="))
    code = next((at for at, one in enumerate(rest[:-1]) if re.fullmatch(r"-\w*c", one)), None)
    if code is not None and name.startswith("python"):
        yield from _of_program(program_of(rest[code + 1]))
    elif code is not None and name in _SHELLS:
        yield from _of_shell(rest[code + 1])


def _of_copies(name: str, words: Sequence[str], given: Sequence[str]) -> Iterator[str]:
    """Yields where a command copies or moves the first of some files: to the last, or where an option says."""
    into = [one.removeprefix(_INTO) for one in words if one.startswith(_INTO)]
    into += [after for one, after in pairwise(words) if name != "rsync" and _INTO_NEXT.fullmatch(one)]
    *files, last = [*(one for one in given if one not in into), *into] or [""]
    if files:
        yield from (last, *(f"{last}/{one.rpartition('/')[2]}" for one in files))


def program_of(text: str) -> ast.Module | None:
    """Returns a program of Python; nothing if the text is none."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escapes in what models write
        return ast.parse(text)
    return None


def _of_program(program: ast.Module | None) -> Iterator[str]:
    if program is None:
        return
    nodes = list(ast.walk(program))
    named = {
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(_name(call.func) == "chdir" for call in calls):
        return
    paths = _Paths(named)
    for call in calls:
        yield from _of_call(call, paths)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _of_call(call: ast.Call, paths: "_Paths") -> Iterator[str]:
    name, on = _name(call.func), call.func.value if isinstance(call.func, ast.Attribute) else None
    given = [paths.of(one)[0] for one in call.args]
    if on is None:
        yield from given[:1] if name == "open" and _writes(call, 1) else ()
        return
    path, is_path = paths.of(on)
    module = getattr(on, "id", "")
    if is_path and (name in _ON_PATH or (name == "open" and _writes(call, 0))):
        yield from (path, *(given if name in ("rename", "replace") else ()))
    elif (count := _OF_MODULES.get(module, {}).get(name)) is not None:
        yield from given[1:2] if count < 0 else given[:count]
    elif name in _TO_FILE:
        yield from given[:1]
    elif (module, name) == ("os", "system") or (module == "subprocess" and call.args):
        words = getattr(call.args[0], "elts", None)
        if words is not None:
            yield from _of_command([paths.of(one)[0] or "$" for one in words])
        elif given:
            yield from _of_shell(given[0])


def _writes(call: ast.Call, place: int) -> bool:
    """Returns whether a file is opened to be written; its mode may be the argument at a place."""
    mode = (
        call.args[place] if len(call.args) > place else next((k.value for k in call.keywords if k.arg == "mode"), None)
    )
    return isinstance(mode, ast.Constant) and re.search(r"[wax+]", str(mode.value)) is not None


class _Paths:
    """The paths that expressions of a program are; each is read once, however often it is named."""

    def __init__(self, named: dict[str, ast.expr]) -> None:
        self._named, self._known = named, dict[tuple[ast.expr, int], tuple[str, bool]]()

    def of(self, node: ast.expr, most: int = 8) -> tuple[str, bool]:
        """Returns the path that an expression is, empty if that is not known, and whether it is one of `pathlib`."""
        if (node, most) not in self._known:
            self._known[node, most] = self._read(node, most)
        return self._known[node, most]

    def _read(self, node: ast.expr, most: int) -> tuple[str, bool]:
        if isinstance(node, ast.Name) and node.id in self._named and most:
            return self.of(self._named[node.id], most - 1)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value, False
        parts = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and most:
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and _name(node.func) == "Path" and most:
            parts = node.args
        if parts is None:
            return "", False
        paths = [self.of(one, most - 1)[0] for one in parts]
        is_known = all(paths) and sum(map(len, paths)) <= _LONGEST
        return ("/".join(paths) if is_known else "", True)
