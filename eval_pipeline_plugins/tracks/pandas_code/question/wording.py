"""Splits a question into words, and separates names of columns and tables from words that ask for something."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.values import value

_TOKEN = re.compile(
    r"""
    (?<!\w)(?P<quote>['"`‘“])(?P<quoted>[^'"`’”]{1,80})['"`’”](?!\w)
    | (?P<date>\d{4}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d(?::\d\d)?)?)
    | (?P<number>\d+(?:,\d{3})*(?:\.\d+)?)(?![^\W\d_])
    | (?P<word>[^\W_](?:\w|(?<=\w)['’](?=[a-z]))*)
    | (?P<sign>>=|<=|==|!=|<>|[<>=%])
    | (?P<stop>[.?!;,&)]+)
    """,
    re.VERBOSE,
)
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))")
_NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        start=1,
    )
} | {"dozen": 12, "twenty-five": 25, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100}
_MONTHS = frozenset("January February March April May June July August September October November December".split())
_COMMON = frozenset("a an and are as at be by do for i if in is it no not of on or so the to up us we".split())
"""English words that are only taken as column names if they are quoted or follow the word `column`."""
_VERBS = frozenset("average count filter group join match merge order rank sort sum total".split())
"""Words that are only taken as column names if they do not give an order, as in "count the orders"."""
_BEFORE_VERBS = frozenset(["", "and", "then", "to", "please", ",", ".", ";"])
_AFTER_VERBS = frozenset("the all how rows them distinct unique each by".split())
_ORDER_AFTER = frozenset("by of the them it these those result results rows descending ascending from in".split())
_ORDER_BEFORE = frozenset("in ascending descending alphabetical chronological reverse sort sorted".split())

COLUMN, NUMBER, TABLE, VALUE = r"«c\d+»", r"«n[\d.]+»", "«t»", "«v»"
"""Patterns of the placeholders in `Wording.text` for a column, a number, a table and a value (quoted, or a date)."""


@value
class Wording:
    """A question in the form that the patterns search.

    Attributes:
        text: lower-case words, separated and surrounded by single spaces; `«c0»` stands for a column, `«n5»` for a
            number (in digits or as a word), `«t»` for a table, `«v»` for a value.
        columns: the named columns, in the order of their first mention.
    """

    text: str
    columns: tuple[str, ...]

    def columns_in(self, text: str) -> tuple[str, ...]:
        """Returns the columns that occur in a part of `text`."""
        return tuple(dict.fromkeys(self.columns[int(place)] for place in re.findall(r"«c(\d+)»", text)))


@dataclass(slots=True)
class _Token:
    """A word, number or punctuation mark of the text; `symbol` is its placeholder."""

    raw: str
    symbol: str
    quoted: bool = False


def word_text(question: str, tables: Mapping[str, Sequence[str]]) -> Wording:
    """Analyses the words of a question about tables.

    A name is recognised in any case, in singular or plural, and with `_`, blanks or capitals between its words. If
    several names match, the one with the most words is taken.

    Args:
        question: the text.
        tables: the columns of each table.
    """
    named_columns = _by_form(column for columns in tables.values() for column in columns)
    named_tables = _by_form(tables)
    longest = max((len(_parts(name)) for name in [*named_tables.values(), *named_columns.values()]), default=0)
    tokens, out, columns = list(_tokens(question)), list[str](), list[str]()
    place = 0
    while place < len(tokens):
        column, used = _named(tokens, place, named_columns, longest)
        if column is not None:
            if column not in columns:
                columns.append(column)
            out.append(f"«c{columns.index(column)}»")
        elif (found := _named(tokens, place, named_tables, longest))[0] is not None:
            out.append(TABLE)
            used = found[1]
        else:
            out.append(tokens[place].symbol)
            used = 1
        place += used
    return Wording(f" {' '.join(out)} ", tuple(columns))


def _tokens(question: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(question):
        raw = found[0]
        match found.lastgroup:
            case "quoted":
                yield _Token(found["quoted"], VALUE, quoted=True)
            case "date":
                yield _Token(raw, VALUE)
            case "number":
                yield _Token(raw, f"«n{raw.replace(',', '')}»")
            case "stop":
                yield _Token(raw, "," if set(raw) <= {",", "&", ")"} else ".")
            case "word" if raw.lower() in _NUMBERS:
                yield _Token(raw, f"«n{_NUMBERS[raw.lower()]}»")
            case "word" if raw in _MONTHS:
                yield _Token(raw, VALUE)
            case _:
                yield _Token(raw, raw.lower())


def _named(tokens: Sequence[_Token], place: int, names: Mapping[str, str], longest: int) -> tuple[str | None, int]:
    """Returns the longest name that begins at a position, and its number of tokens."""
    best: tuple[str | None, int] = (None, 0)
    form, parts = "", 0
    for end in range(place, len(tokens)):
        token = tokens[end]
        pieces = _parts(token.raw)
        parts += len(pieces)
        # A name does not extend across a punctuation mark or a quotation mark.
        if not pieces or parts > longest or (end > place and (token.quoted or tokens[place].quoted)):
            break
        form += "".join(map(_singular, pieces))
        name = names.get(form)
        if name is not None and not _is_plain_word(tokens, place, end, name):
            best = (name, end - place + 1)
    return best


def _is_plain_word(tokens: Sequence[_Token], place: int, end: int, name: str) -> bool:
    """Returns whether a single word that looks like a name means something else here."""
    token = tokens[place]
    if end > place or token.quoted:
        return False
    word = token.raw.lower()
    before = tokens[place - 1].raw.lower() if place else ""
    after = tokens[end + 1].raw.lower() if end + 1 < len(tokens) else ""
    if word in _COMMON:
        return before not in ("column", "columns", "field")
    if len(word) == 1:
        return token.raw != name
    if word in _VERBS and before in _BEFORE_VERBS and after in _AFTER_VERBS:
        return True
    if word in ("top", "bottom") and end + 1 < len(tokens) and tokens[end + 1].symbol.startswith("«n"):
        return True
    if word == "order" and name.lower() != word:  # the table is called `orders`, but this is "order by"
        return after in _ORDER_AFTER or before in _ORDER_BEFORE
    return False


def _by_form(names: Iterable[str]) -> dict[str, str]:
    """Returns the names by their comparison form; the first one if several have the same form."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault("".join(map(_singular, _parts(name))), name)
    found.pop("", None)
    return found


def _parts(name: str) -> list[str]:
    """Splits a name into words; `CustomerID`, `customer_id` and `customer id` have the same two."""
    return [part.lower() for part in _PARTS.findall(_HUMP.sub(" ", name))]


def _singular(word: str) -> str:
    """Returns the singular of a regular plural."""
    if word == "ids":
        return "id"
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    return word[:-1]
