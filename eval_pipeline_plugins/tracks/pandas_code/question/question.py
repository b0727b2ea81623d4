"""Finds what a question about tables asks for, from its words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.question.wording import COLUMN, NUMBER, TABLE, VALUE, Wording, word_text

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


End = Literal["top", "bottom"]
Direction = Literal["ascending", "descending"]

_ENDS: Mapping[End, str] = {
    "top": "top|largest|highest|biggest|greatest|best",
    "bottom": "bottom|smallest|lowest|fewest|worst",
}
_ENDS_AFTER_NUMBER: Mapping[End, str] = {"top": f"{_ENDS['top']}|most", "bottom": f"{_ENDS['bottom']}|least"}
_NO_NUMBER_OF_ROWS = frozenset("than least most over under above below exceeding is are equals in of to = > <".split())
"""Words after which a number is not a number of rows."""

_STATISTICS = {
    "mean": re.compile(r" (?:mean|averag(?:e|es|ed)|avg)(?= )"),
    "sum": re.compile(r" (?:sum(?:s|med)?|totals?|totall?ed)(?! (?:number|count) )(?= )"),
    "max": re.compile(r" (?:max|maximum|maxima)(?= )"),
    "min": re.compile(r" (?:min|minimum|minima)(?= )"),
    "count": re.compile(
        r" (?:count(?:s|ed|ing)?|numbers? of(?! (?:days|weeks|months|years|hours|minutes) )|how many)(?= )"
    ),
}
_TIMES = "days?|weeks?|months?|quarters?|years?|hours?|decades?|weekdays?"
_LIST = rf"(?:the )?{COLUMN}(?:(?: ,)?(?: and)?(?: by| per)?(?: the)? {COLUMN})*"
_GROUPED = re.compile(
    rf" (?:group(?:s|ed|ing)? (?:\S+ ){{0,4}}?by|per|by|(?:for|in|within|across|(?<!row)(?<!rows) of) (?:each|every)) "
    rf"(?:the |each |every )*"
    rf"(?P<what>{_LIST}|{TABLE}|{_TIMES}|\S+)(?= )"
)
_BEFORE_BY = re.compile(
    r"(?<! at) (?:(?P<group>group\w*|aggregat\w*|means?|averages?|avg|sums?|totals?|counts?|number|many|maximum|max"
    r"|minimum|min|medians?|split|broken|breakdown|distribution)"
    r"|(?P<other>sort\w*|order(?:ed|ing)?|rank\w*|top|bottom|largest|smallest|highest|lowest|most|least|ascending"
    r"|descending|arranged?|join\w*|merg\w*|combin\w*|match\w*|divid\w*|multipl\w*|increas\w*|decreas\w*|reduc\w*"
    r"|weight\w*|filter\w*|shift\w*))(?= )"
)
_ORDERS: Mapping[Direction, re.Pattern[str]] = {
    "descending": re.compile(
        r" (?:descending|desc|decreasing|reverse (?:alphabetical|chronological)(?:ly)?"
        r"|(?:highest|largest|most|biggest|newest|latest|best|high)(?: \S+)? "
        r"(?:to (?:the )?(?:low|small|least|old)\w*|first))(?= )"
    ),
    "ascending": re.compile(
        r" (?:ascending|asc|increasing|(?<! reverse )(?:alphabetical|chronological)(?:ly)?"
        r"|(?:lowest|smallest|least|oldest|earliest|low)(?: \S+)? "
        r"(?:to (?:the )?(?:high|larg|big|most|new|lat)\w*|first))(?= )"
    ),
}
_SORTED = re.compile(r" (?:sort(?:s|ed|ing)?|order(?:ed|ing)?)(?= )")
_END_WORDS: Mapping[End, re.Pattern[str]] = {
    "top": re.compile(r" (?:top|largest)(?= )"),
    "bottom": re.compile(r" (?:bottom|smallest)(?= )"),
}
_JOINED = re.compile(
    r" (?:join(?:s|ing)?|joined(?! (?:after|before|in|since|between|during|the company) )|merg(?:e|es|ed|ing)"
    r"|combin(?:e|es|ed|ing)|match(?:es|ed|ing)?)(?= )"
)
_JOIN_KEYS = re.compile(
    r" (?:join\w*|merg\w+|combin\w+|match\w*) "
    r"(?:(?:[^\s.]+ ){0,12}?(?:on|by|using|via|through|same|common|shared) )?"
    rf"(?:(?:their|the|its|same|common|shared|columns?|keys?) )*(?P<keys>{_LIST})"
)


@value
class RowSelection:
    """A request for rows from one end of an order.

    Attributes:
        n: how many; None if the number is not stated, or is a share.
    """

    end: End
    n: int | None


@value
class QuestionWords:
    """What a question asks for.

    Attributes:
        columns: columns that it names, spelled as in the tables.
        selections: "top 5", "three smallest" and similar requests, each with a number.
        statistics: any of `mean`, `sum`, `max`, `min`, `count`, `group`.
        conditions: how many conditions on rows it states.
        ranges: how many of these have two ends ("between 5 and 10").
        grouped: whether it asks for something per group.
        groupings: columns that define the groups, as far as it names them.
        ordered: whether it asks for its rows in an order; "top 5" alone does not.
        directions: directions of the requested orders.
        ends: `top` and `bottom` if it names that end, with a number or without.
        joined: whether it asks to join tables.
        join_keys: columns named for joining.
        shared_columns: columns that more than one table has.
        all_columns: all columns of the tables, in order.
    """

    columns: tuple[str, ...]
    selections: tuple[RowSelection, ...]
    statistics: tuple[str, ...]
    conditions: int
    ranges: int
    grouped: bool
    groupings: tuple[str, ...]
    ordered: bool
    directions: tuple[Direction, ...]
    ends: tuple[End, ...]
    joined: bool
    join_keys: tuple[str, ...]
    shared_columns: tuple[str, ...]
    all_columns: tuple[str, ...]


def read_question(text: str, tables: Mapping[str, Sequence[str]]) -> QuestionWords:
    """Analyses a question by its words (docs/pandas.md: understanding and coverage).

    Words that name tables or columns do not count as requests. A single table needs no join.

    Args:
        text: the question.
        tables: the columns of each table; empty if unknown.
    """
    wording = word_text(text, tables)
    plain = wording.text
    groups = list(_groups(wording))
    selections = tuple(_selections(plain))
    statistics = tuple(name for name, pattern in _STATISTICS.items() if pattern.search(plain))
    # Without a column, a group is only meant if the question asks something about it; "units per order" is no group.
    grouped = any(columns for columns, _ in groups) or any(sure or statistics for _, sure in groups)
    conditions = read_conditions(plain)
    joined = len(tables) != 1 and _JOINED.search(plain) is not None
    directions = tuple(name for name, pattern in _ORDERS.items() if pattern.search(plain))
    ends = [name for name, pattern in _END_WORDS.items() if pattern.search(plain)]
    return QuestionWords(
        columns=wording.columns,
        selections=selections,
        statistics=(*statistics, "group") if grouped else statistics,
        conditions=conditions.count,
        ranges=conditions.ranges,
        grouped=grouped,
        groupings=tuple(dict.fromkeys(column for columns, _ in groups for column in columns)),
        ordered=bool(directions) or _SORTED.search(plain) is not None,
        directions=directions,
        ends=tuple(dict.fromkeys([*(selection.end for selection in selections), *ends])),
        joined=joined,
        join_keys=_join_keys(wording) if joined else (),
        shared_columns=_shared(tables),
        all_columns=tuple(dict.fromkeys(column for columns in tables.values() for column in columns)),
    )


def _selections(plain: str) -> Iterator[RowSelection]:
    """Yields each requested number of rows once, whether the word for the end comes before or after it."""
    number = r"«n(?P<n>\d+)»(?P<share> (?:%|percent))?"
    seen: set[tuple[End, int]] = set()
    for end, words in _ENDS.items():
        later = _ENDS_AFTER_NUMBER[end]
        for pattern in (
            rf" (?:{words}) {number}(?= )",
            rf"(?:(?P<before>\S+)|^) {number} (?:{later})(?= )",
            rf"(?:(?P<before>\S+)|^) {number}(?: (?!(?:and|or|[.]) )\S+){{1,4}}? "
            rf"(?:with|by|having|have|had|has|of)(?: the)? (?:{later})(?= )",
            rf" (?:which|what) {number}(?: (?!(?:and|or|than|[,.]) )\S+){{1,6}}? the (?:{later})(?= )",
        ):
            for found in re.finditer(pattern, plain):
                place = (end, found.start("n"))
                if place not in seen and found.groupdict().get("before") not in _NO_NUMBER_OF_ROWS:
                    seen.add(place)
                    yield RowSelection(end, None if found["share"] else int(found["n"]))


def _groups(wording: Wording) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yields the columns of each requested group, and whether it counts as a group even without columns."""
    plain = wording.text
    for found in _GROUPED.finditer(plain):
        phrase, what = found[0].split(" ")[1], found["what"]
        if phrase == "by" and not _is_grouping_by(plain[: found.start() + 1]):
            continue
        columns = wording.columns_in(what)
        sure = phrase.startswith("group") or re.fullmatch(_TIMES, what) is not None
        if columns or sure or (what == TABLE and phrase != "by"):
            yield columns, sure


def _is_grouping_by(before: str) -> bool:
    """Returns whether a `by` after this text groups.

    The last word that takes a `by` decides ("sorted by", "sum by").
    """
    sentence = before.rpartition(" . ")[2]
    found = list(_BEFORE_BY.finditer(f" {sentence}"))
    return not found or found[-1]["group"] is not None


def _join_keys(wording: Wording) -> tuple[str, ...]:
    found = [wording.columns_in(match["keys"]) for match in _JOIN_KEYS.finditer(wording.text)]
    return tuple(dict.fromkeys(column for columns in found for column in columns))


def _shared(tables: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    columns = [column for names in tables.values() for column in dict.fromkeys(names)]
    return tuple(dict.fromkeys(column for column in columns if columns.count(column) > 1))
