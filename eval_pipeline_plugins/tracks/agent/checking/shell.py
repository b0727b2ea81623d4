"""Reads commands of a shell: their words, and the here-documents that they are given."""

import io
import re
import shlex
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from eval_pipeline.core.values import value

ENDS, SIGNS = frozenset("();|&\n"), frozenset("();<>|&\n")
"""What ends a command, and all that is no part of a word."""
_MARK = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_FIRST = re.compile(r"[ \t]*(\w+)\b")


@value
class HereDocument:
    """A text that a command is given below it.

    Attributes:
        command: the line of the command as far as the mark of the text.
        text: the lines of the text.
    """

    command: str
    text: str


def without_documents(text: str) -> tuple[str, tuple[HereDocument, ...]]:
    """Returns commands without their here-documents, and these; one that is not closed is none."""
    if "<<" not in text:
        return text, ()
    lines, kept, found = text.split("\n"), list[str](), list[HereDocument]()
    first = defaultdict[str, list[int]](list)
    for place, line in enumerate(lines):
        if (word := _FIRST.match(line)) is not None:
            first[word[1]].append(place)
    place = 0
    while place < len(lines):
        line, after = lines[place], place + 1
        for mark in _MARK.finditer(line):
            ends = first.get(mark[2], [])
            if (at := bisect_left(ends, after)) < len(ends):
                found.append(HereDocument(line[: mark.start()], "\n".join(lines[after : ends[at]])))
                after = ends[at]
                lines[after] = lines[after].lstrip(" \t").removeprefix(mark[2])
        kept.append(_MARK.sub(" ", line) if after > place + 1 else line)
        place = after
    return "\n".join(kept), tuple(found)


class _Lines(io.StringIO):
    """A text of which the end of a line is left when the rest of it, a comment, is read: a command ends there."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Reads a line without its end."""
        line = super().readline(size)
        self.seek(self.tell() - line.endswith("\n"))
        return line.removesuffix("\n")


def commands_in(text: str) -> Iterator[list[str]]:
    """Yields the words of each command, and `)` where commands in brackets end.

    Raises ValueError at the end of a text in which a quote is not closed.
    """
    lexer = shlex.shlex(_Lines(text), posix=True, punctuation_chars="".join(SIGNS))
    lexer.whitespace, lexer.whitespace_split, words = " \t\r", True, list[str]()
    try:
        for word in lexer:
            if set(word) <= ENDS:
                yield words
                words = []
                if ")" in word:
                    yield [")"]
            else:
                words.append(word)
    except ValueError:
        yield words
        raise
    yield words
