"""Decides whether the requirements of a question can be found in its words with certainty."""

import re

_FORMAT = re.compile(r"@\w+\[|```|\bformat\s*:|\bconstraints?\s*:|\bcomplete this program", re.I)
_AMBIGUOUS = re.compile(
    r"""
    # A word for a statistic that may be part of a column's name, or of what is counted.
    \b(?:mean|average|median|sum|total)\ (?:\w+\ ){0,2}of\ (?:the|all)\ (?:maximum|minimum|average|mean|total)s?\b
    | \b(?:maximum|minimum|average)\ [\w ]{1,30}\ \(
    | \b(?:mean|average|median|most)\ number\ of\b
    | \bnumber\ of\ [\w/ ]{1,40}\ (?:they|it|he|she|(?:each|every)\ \w+)\ (?:has|have|had|made)\b
    | \b(?!(?:the|an?|total|and|or|by|in|as|are|is|each|same|their|these|those|of|what|with|that|which|find|count|list
        |show|give|return|largest|smallest|highest|lowest|greatest|fewest|least)\b)\w+\ numbers?\b
    # `by` after a verb says who did it; at the end, what a date belongs to ("in 2023, by sold_at").
    | \b(?!(?:sort|order|group|rank|join|aggregat|split|index)ed\b)\w+ed\ by\b
    | ,\ by\ \w+\W*$
    # What looks like a condition without a comparison.
    | \b(?:who|that|which)\ (?:has|have)\ an?\ \w+\W*$
    | \bwhere\ (?:has|have|is|are)\b
    | \bcompared\ (?:to|with)\b
    | \bnew\ (?:feature|column)\b
    """,
    re.I | re.VERBOSE,
)
"""Phrases whose words have two meanings, each seen to be taken for the wrong one in questions of public data sets."""
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
    if found := _AMBIGUOUS.search(question):
        return f"'{found[0].strip(', ')}' can be read in two ways"
    if len(question) > _LONGEST or len(_SENTENCE.findall(question)) > _MOST_SENTENCES:
        return f"the question has more than {_MOST_SENTENCES} sentences or {_LONGEST} characters"
    return None
