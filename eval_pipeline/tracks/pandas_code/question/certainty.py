"""Decides whether the requirements of a question can be found in its words with certainty."""

import re

_FORMAT = re.compile(r"@\w+\[|```|\bformat\s*:|\bconstraints?\s*:|\bcomplete this program", re.I)
_LONGEST = 320
_MOST_SENTENCES = 3
_SENTENCE = re.compile(r"[.?!](?:\s|$)")


def why_unsure(question: str) -> str | None:
    """Returns why the words of a question are not sufficient to find its requirements; None if they are.

    Text about the form of an answer looks like conditions on rows, and in a long question many sentences are about
    something else.
    """
    if _FORMAT.search(question):
        return "the question describes the form of its answer or has code in it"
    if len(question) > _LONGEST or len(_SENTENCE.findall(question)) > _MOST_SENTENCES:
        return f"the question has more than {_MOST_SENTENCES} sentences or {_LONGEST} characters"
    return None
