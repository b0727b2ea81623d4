"""Which value of a result was answered, and whether the right one stands beside it."""

import re
from collections.abc import Sequence

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.agent.way.chain import WayStep, keys_in
from eval_pipeline_plugins.tracks.agent.way.values import GivenNumber, Leaf, folded, holds
from eval_pipeline_plugins.tracks.agent.way.values import rows_of as _split

_FEW = 12
_LAST_WORDS = 200
"""Those of an answer among which its result is looked for; each takes time in proportion to all results."""


def named_text(answer: Json, right: Sequence[list[Leaf]], texts: Sequence[str], question: str) -> list[Leaf] | None:
    """Returns the text of a result that a sentence names, where the right answer is one of as many words.

    Args:
        answer: what was answered.
        right: the accepted answers, each as its values.
        texts: results of calls.
        question: words of it are not looked for.
    """
    wanted = next((one[0] for one in right if len(one) == 1), None)
    if not isinstance(answer, str) or not isinstance(wanted, str) or len(answer.split()) <= 2 * len(wanted.split()):
        return None
    words, size, asked = re.findall(r"[\w-]+", folded(answer))[-_LAST_WORDS:], len(wanted.split()), folded(question)
    told = (" ".join(words[at : at + size]) for at in range(len(words) - size, -1, -1))
    if size < 2:  # a single word may stand anywhere
        return None
    found = next((one for one in told if one not in asked and any(holds(text, one) for text in texts)), None)
    return None if found is None else [found]


def named(given: list[Leaf], right: list[list[Leaf]]) -> list[Leaf]:
    """Returns the keys that a sentence names, where the right answer is one; else what was given."""
    is_key = any(len(one) == 1 and isinstance(one[0], str) and keys_in(one[0]) == {one[0]} for one in right)
    text = given[0] if len(given) == 1 else None
    found = sorted(keys_in(text)) if isinstance(text, str) and " " in text and is_key else []
    return [*found] if len(found) == 1 else given


def is_picked(step: WayStep, given: list[Leaf], right: list[Leaf], gold: Sequence[WayStep]) -> bool:
    """Returns whether a result has the right values in rows that come first, and others were answered.

    Or what was answered is neither in its first nor its last row; or a condition of the gold tells the rows apart.
    """
    if len(right) > _FEW or not all(holds(step.text, one) for one in (*given, *right)):
        return False
    rows = rows_of(step)
    theirs, mine = (
        [next((at for at, row in enumerate(rows) if holds(row, one)), -1) for one in told]
        for told in (right, [one for one in given if one not in right])
    )
    if not mine or -1 in (*mine, *theirs):
        return False
    is_first = max(theirs) < min(mine)
    constants = {folded(one.what.rpartition(" ")[2]) for each in gold for one in each.facts if one.kind == "where"}
    constants = {one for one in constants if not _KEY.search(one)}
    is_told = any(
        all(holds(rows[at], one) for at in theirs) and not any(holds(rows[at], one) for at in mine) for one in constants
    )
    return is_first or is_told or (len(mine) == len(right) == 1 and 0 < mine[0] < len(rows) - 1)


_KEY = re.compile(r"^.?$|[a-z_-]+\d")
"""A constant that tells of one row, or of many by chance."""


def rows_of(step: WayStep) -> list[str]:
    """Returns the first rows of what a call gave."""
    return _split(step.text, is_headed=step.name == "sql")


def has_other_keys(given: list[Leaf], right: list[list[Leaf]]) -> bool:
    """Returns whether a table has several texts, and none of them is a right one."""
    keys = [{one for one in told if isinstance(one, str)} for told in (given, *right)]
    is_table = any(isinstance(one, GivenNumber) for one in given)
    return is_table and min(map(len, keys)) > 1 and not any(keys[0] & one for one in keys[1:])
