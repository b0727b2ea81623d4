"""Finds the part of a response that gives the answer, and whether it breaks off."""

import re

from eval_pipeline.core.values import value

_MARKER = re.compile(
    r"(?im)^[ \t>*_#`~-]*(?:(?:so|thus|hence|therefore)[, ]+)?(?:(?:the|my)[ \t]+)?"
    r"(?:(?:final|correct|right|short|best)[ \t]+)?(?:answer|label|category|class|classification|result|solution)"
    r"(?:[ \t]+is(?!\w)[ \t]*:?|[ \t]*[*_`]{0,3}[ \t]*[:=])[ \t]*[*_`]{0,3}[ \t]*"
)
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}")
_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)[\w-]*[ \t]*$")
_LAST_WORD = re.compile(r"([^\W\d_]+(?:['’][^\W\d_]+)?)[ \t]*$")
_OPEN_WORDS = frozenset(
    "a an and are as at be because been being but by either for from if in into is it's its may might neither nor not "
    "of on or probably since so than that the their then this to versus vs was were when whether which while will with "
    "without would isn't aren't wasn't i".split()
)
"""Words with which no sentence ends."""
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"))
_MOST_CHARS = 100_000


@value
class Section:
    """The part of a response that gives the answer.

    Attributes:
        text: without the words that introduce it.
        marked: whether the response introduces it, as `Answer: …` does.
    """

    text: str
    marked: bool


def answer_section(text: str) -> Section:
    r"""Returns the text after the last `Answer:` of a response, or else its last paragraph.

    An answer in a box (`\boxed{…}`) counts as introduced. Responses that begin with the answer on a line of its own
    are handled in `labels`.
    """
    text = _FENCE.sub("", text[-_MOST_CHARS:]).strip()
    found = list(_MARKER.finditer(text))
    boxed = list(_BOXED.finditer(text))
    if boxed and (not found or boxed[-1].start() >= found[-1].start()):
        return Section(boxed[-1][1].strip(), True)
    if found:
        return Section(text[found[-1].end() :].strip(), True)
    paragraphs = [part.strip() for part in re.split(r"\n[ \t]*\n", text) if part.strip()]
    return Section(paragraphs[-1] if paragraphs else "", False)


def last_line(text: str) -> str:
    """Returns the last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def plain(text: str) -> str:
    """Returns the text without Markdown marks around words and without insignificant white space."""
    return " ".join(re.sub(r"[*`]+|(?<!\w)_+|_+(?!\w)", "", text).split())


def why_unfinished(text: str) -> str | None:
    """Returns why a text is not a finished answer, or None if it is one."""
    text = text.strip()
    if not text:
        return "the answer is empty"
    bare = plain(text)
    if bare.endswith(("…", "...")):
        return "the answer breaks off with dots"
    if bare.endswith((",", ";", ":", "-", "–", "—", "/", "&", "+", "=", "(", "[", "{", "“", "«")):
        return f"the answer breaks off after '{bare[-1]}'"
    for opening, closing in _PAIRS:
        if text.count(opening) > text.count(closing):
            return f"the answer breaks off: '{opening}' is not closed"
    last = _LAST_WORD.search(bare)
    # A text of one word may be the answer "it", or the option A.
    if last and last[1].casefold().replace("’", "'") in _OPEN_WORDS and len(bare.split()) > 1:
        return f"the answer breaks off after '{last[1]}'"
    return None
