"""Counts the conditions on rows that a question states."""

import re

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.question.wording import COLUMN, NUMBER, VALUE

_LITERAL = rf"(?:{NUMBER}|{VALUE})"
_BETWEEN = rf"between (?:\S+ ){{0,2}}?{_LITERAL}(?: %)? and\b|\bfrom {_LITERAL} to {_LITERAL}"
_COMPARED = (
    "greater|more|less|fewer|larger|smaller|higher|lower|bigger|older|younger|longer|shorter|cheaper|later|earlier|newer"
    "|heavier|lighter|faster|slower|better|worse|other"
)
_RANGE = re.compile(rf"(?<= )(?:{_BETWEEN})")
_COMPARISON = re.compile(
    rf"""(?<=\ )(?:
    {_BETWEEN.replace(" ", r"[ ]")}
    | (?:(?:is|are|no|not)\ )?(?:{_COMPARED})\ than(?:\ or\ equals?(?:\ to)?)?
    | {NUMBER}\ or\ (?:more|less|fewer|higher|lower|older|younger|above|below|over|under|greater|later|earlier|longer)
    | at\ (?:least|most) | up\ to\ {NUMBER}
    | (?:above|below|exceed(?:s|ed|ing)?|beyond)
    | (?:over|under|before|after|since|until|prior\ to)\ (?:the\ )?(?:{_LITERAL}|average|mean|median)
    | (?:in|during)\ (?:the\ year\ )?«n(?:19|20)\d\d» | (?:in|during)\ {VALUE}
    | (?:is\ |are\ )?(?:not\ )?equals?(?:\ to)?\b | different\ from
    | >= | <= | == | != | <> | > | < | =
    | contain(?:s|ing)? | (?:start|begin|end)(?:s|ing)?\ with
    | except(?:\ for)? | exclud(?:e|es|ed|ing)
    | (?:without|no|not|non|with|have|has|having|is|are)\ (?:any\ |a\ )?(?:missing|null|nan)
    | {COLUMN}\ (?:(?:is|are|was|were|of)\ )?(?:not\ )?{VALUE}
    | {COLUMN}\ (?:is|are|was|were)\ (?:not\ )?(?:{NUMBER}|true|false|empty)
    | {COLUMN}\ (?:(?:is|are)\ )?(?:not\ )?(?:missing|null|nan)
    )(?=\ )""",
    re.VERBOSE,
)
_FORMULA = rf"(?:is|equals?) (?:the )?(?:sum|product|difference|ratio|{COLUMN} (?:times|plus|minus|divided))"
_DEFINED = rf"(?:it|(?:\S+ ){{1,4}}?(?:means?|{_FORMULA}))"
"""Matches after a `where` that explains the meaning of a word instead of selecting rows."""
_INTRODUCTION = re.compile(
    rf"(?<= )(?:where(?! {_DEFINED})|filter(?:s|ed|ing)?|whose|such that|restrict(?:ed)? to"
    r"|that (?:are|is|have|has|was|were)|(?<=[^. ] )who (?:are|is|have|has|was|were)"
    rf"|(?<!not )only(?! (?:the )?(?:columns?|fields?|top|bottom|first|last|largest|smallest|highest|lowest|{NUMBER}"
    rf"|{COLUMN}(?: [.,]| and| or| columns?| $))))(?= )"
)
_STATED = re.compile(rf"(?<= ){COLUMN} (?:is|are|was|were|has|have|in|not)(?= )")
"""Matches a condition where one is expected: after `where`, and after `and` that follows another condition."""
_BORDER = re.compile(r"(?<= )(and|or|but|,|\.)(?= )")


@value
class QuestionConditions:
    """The conditions on rows in a question.

    Attributes:
        count: the number of all conditions.
        ranges: how many have two ends, such as "between 5 and 10".
    """

    count: int
    ranges: int


def read_conditions(text: str) -> QuestionConditions:
    """Counts the conditions in a `Wording.text`.

    Every comparison is a condition. A word that introduces conditions (`where`, `only`, ...) counts as one if no
    comparison follows it before the next `and`, `or` or the end of the sentence. A part added by `and` or `or` is a
    condition if it compares, or if it states something about a column right after another condition.
    """
    # Removed first, because the `and` and `or` inside them connect no conditions.
    plain = _COMPARISON.sub("«compared»", text)
    count, pending, chained = 0, False, False
    pieces = _BORDER.split(plain)
    for before, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        compared = piece.count("«compared»")
        if before == ".":
            count, pending, chained = count + pending, False, False
        elif pending and not (before == "," and compared):
            count, pending, chained = count + 1, False, True
        if compared:
            count, pending, chained = count + compared, False, True
        elif _INTRODUCTION.search(piece):
            pending = True
        elif chained and before in ("and", "or", "but") and _STATED.search(piece):
            count += 1
        elif before != ",":
            chained = False
    return QuestionConditions(count + pending, len(_RANGE.findall(text)))
