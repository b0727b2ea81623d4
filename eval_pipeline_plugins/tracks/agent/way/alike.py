"""Whether facts of two calls say the same, or one of them what follows from the other and from results."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from math import isclose

from eval_pipeline_plugins.tracks.agent.way.chain import WayStep, is_own, keys_in, numbers_in
from eval_pipeline_plugins.tracks.agent.way.facts.told import CodeFact, Facts, parts_of, plainly

PLAIN = frozenset({"0", "1", "null"})
"""Constants that are written, or not, in conditions that are the same."""
PATTERN = re.compile(r"[\\\[(?^]")
"""What only patterns have, which say the same in many ways."""
_EXACT, _MOST_ROWS = 1e-5, 100
_ORDER = re.compile(r" ([-+*/%]+) ")


SAME, _ANY = 3.0, "%_*. "
"""The most that `pairing` gives; what patterns and names have around them."""


def pairing(one: CodeFact, other: CodeFact) -> float:
    """Returns how likely a condition is in the place of another one, 0 to `SAME`: by column, sign and constant."""
    halves = [parts_of(fact.what) for fact in (one, other)]
    column, sign, constant = (left.strip(_ANY) == right.strip(_ANY) for left, right in zip(*halves, strict=True))
    if sign and all(PATTERN.search(half[2]) for half in halves):
        return SAME
    if constant:
        is_same = sign or {halves[0][1], halves[1][1]} == {"=", "like"}
        return SAME if is_same else 2.0 if constant and (column or halves[0][2] not in PLAIN) else 0.0
    return 1.5 * bool(sign) + 0.4 * bool(column)


def is_wider(one: CodeFact, other: CodeFact) -> bool:
    """Returns whether a condition keeps all rows that another one keeps, and more."""
    (column, sign, constant), (beside, narrow, wanted) = (parts_of(fact.what) for fact in (one, other))
    if column.strip(_ANY) != beside.strip(_ANY):
        return False
    if sign == "<>":
        return narrow == "=" and constant != wanted
    is_ordered = {sign, narrow} <= {"<", "<="} or {sign, narrow} <= {">", ">="}
    if not is_ordered or constant == wanted:
        return False
    try:
        is_above = float(constant) > float(wanted)
    except ValueError:
        is_above = constant > wanted
    return is_above == (sign in ("<", "<="))


def is_given(number: CodeFact, given: Collection[float]) -> bool:
    """Returns whether a number in code is there because a result had it."""
    return any(isclose(float(number.what), one, rel_tol=_EXACT) for one in given)


def bare(word: str) -> str:
    """Returns a word without the zeros that it begins with."""
    return word.lstrip("0") or "0"


def is_turned(one: CodeFact, other: CodeFact) -> bool:
    """Returns whether both reckon with the same two columns: by another operator, or in the other order (`a / b`)."""
    left, right = (_ORDER.split(f" {fact.what} ", maxsplit=1) for fact in (one, other))
    pairs = [{half.strip() for half in told[::2]} for told in (left, right)]
    if left[1] == right[1] == "/" and {left[0].strip(), left[2].strip()} & {right[0].strip(), right[2].strip()} - {""}:
        return left[0].strip() == right[2].strip() != "" or left[2].strip() == right[0].strip() != ""
    return pairs[0] == pairs[1] and len(pairs[0] - {""}) > 1 and (left[1] != right[1] or left[1] in ("-", "/"))


def nameless(fact: CodeFact) -> CodeFact | None:
    """Returns a condition as it is where its column has no name, as in tuples; None where it says too little."""
    _, sign, constant = parts_of(fact.what)
    return CodeFact("where", f" {sign} {constant}") if fact.kind == "where" and constant not in PLAIN else None


def is_key(fact: CodeFact) -> bool:
    """Returns whether a condition asks for a key, such as M-0004."""
    _, sign, constant = parts_of(fact.what)
    return sign == "=" and keys_in(constant.casefold()) == {constant.casefold()}


def is_looked_up(fact: CodeFact, mine: Sequence[WayStep]) -> bool:
    """Returns whether a condition asks for what an earlier call gave."""
    if is_key(fact):
        key, place = keys_in(fact.what.casefold()), next((at for at, one in enumerate(mine) if fact in one.facts), 0)
        return any(key <= keys_in(one.text.casefold()) for one in mine[:place] if one.computes())
    wanted = set(filter(is_own, numbers_in(fact.what.rpartition(" = ")[2]))) if fact.kind == "where" else set()
    place = next((at for at, one in enumerate(mine) if fact in one.facts), 0)
    given = {number for one in mine[:place] if one.computes() for number in numbers_in(one.text)}
    return bool(wanted) and wanted <= given


def without_looked_up(
    said: list[CodeFact], keys: list[CodeFact], texts: Sequence[str]
) -> tuple[list[CodeFact], list[CodeFact]]:
    """Returns both sides without a condition of one, and the conditions of the other on the keys of just its rows.

    Args:
        said: facts of the side that names rows by a word.
        keys: facts of the side that names them by their keys.
        texts: results in which word and keys stand side by side.
    """
    by_column = defaultdict[str, list[CodeFact]](list)
    for one in keys:
        if one.kind == "where" and (parts := parts_of(one.what))[1] == "=" and parts[2] not in _NO_KEYS:
            by_column[parts[0]].append(one)
    for one in said:
        _, sign, constant = parts_of(one.what)
        if one.kind != "where" or sign not in ("=", "like") or constant in PLAIN:
            continue
        for those in by_column.values():
            wanted = {parts_of(key.what)[2].casefold() for key in those}
            if len(wanted) > 1 and any(_keys_beside(constant.casefold(), wanted, text) for text in texts):
                return [other for other in said if other != one], [other for other in keys if other not in those]
    return said, keys


_NO_KEYS = frozenset({"null", "true", "false"})


def _keys_beside(constant: str, keys: Collection[str], text: str) -> bool:
    """Returns whether the rows of a result that have a word are one for each of some keys."""
    lines = [line for line in text.casefold().splitlines()[:_MOST_ROWS] if constant in line]
    rows = [re.findall(r"[\w.-]+", line) for line in lines]
    found = [set(row) & set(keys) for row in rows if constant in row]
    return len(found) == len(keys) and all(len(one) > 0 for one in found) and set().union(*found) == set(keys)


def without_months(missing: list[CodeFact], extra: list[CodeFact]) -> tuple[list[CodeFact], list[CodeFact]]:
    """Returns both sides without a month of the gold that the attempt asks for without its year."""
    for one in missing:
        first = _FIRST_DAY.fullmatch(one.what) if one.kind == "where" else None
        if first is not None:
            column, month = first.groups()
            days = plainly(Facts([CodeFact("where", f"{column} = {month}")]))
            told = {CodeFact("where", f"{name} = {int(month[5:])}") for name in (column, "month", "")}
            if told & {*extra} and days.keys() <= {*missing}:  # else the gold keeps other days than those of one month
                missing, extra = [one for one in missing if one not in days], [one for one in extra if one not in told]
    return missing, extra


_FIRST_DAY = re.compile(r"(.*) >= (\d{4}-\d\d)-01")


def _share(one: Facts, other: Facts) -> float:
    either = (one | other).total()
    return (one & other).total() / either if either else 0.0


def likeness(one: Facts, other: Facts, kinds: Collection[str]) -> float:
    """Returns how alike two calls are, 0..2: the share of common facts, plus that among facts of some kinds."""
    near = [Facts({fact: n for fact, n in facts.items() if fact.kind in kinds}) for facts in (one, other)]
    return _share(*near) + _share(one, other)


def loosely(facts: Facts) -> Facts:
    """Returns facts with conditions on whatever column."""
    found: Facts = Facts()
    for one, count in facts.items():
        found[CodeFact("where", " ".join(parts_of(one.what)[1:])) if one.kind == "where" else one] += count
    return found
