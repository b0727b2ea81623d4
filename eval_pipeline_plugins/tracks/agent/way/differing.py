"""In what the calls that led to a result differ from those of the gold, at which of them, and how much that tells."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from eval_pipeline_plugins.tracks.agent.way.chain import Departure, WayStep
from eval_pipeline_plugins.tracks.agent.way.facts.told import CodeFact
from eval_pipeline_plugins.tracks.agent.way.reads import USER
from eval_pipeline_plugins.tracks.agent.way.signs import OTHER_FIGURES, OTHER_ROWS, TABLE, Sign, WaysBeside
from eval_pipeline_plugins.tracks.agent.way.values import FigureRatio, figure, numbers_of

_MOST_WORDS, _HARDLY = 3, 3
_DIGITS = 2
"""Of a figure that hardly is the same by chance."""
_BEFORE_RIGHT = 0.15
"""What signs at a call are worth where it, or one after it, gave a figure that the gold gives; tried by hand."""
_DATA = re.compile(r"\.(?:csv|tsv|jsonl|log|txt|parquet|xlsx?)$")
"""Files of rows; what others lack, as lists of words, are conditions."""
WEIGHTS: Mapping[str, float] = {
    "another source": 4.0,
    "number explains": 2.4,
    "another condition": 2.4,
    "turned": 2.4,
    "another operator": 2.4,
    "joined otherwise": 2.0,
    "another column is selected": 1.5,
    "another aggregate": 1.5,
    "turned over": 1.5,
    "condition beside": 1.2,
    "number beside": 1.2,
    "condition is missing": 1.0,
    "rows differ": 0.8,
    "case is missing": 0.8,
    "another order of columns": 0.8,
    "note is missing": 0.8,
    "operator beside": 0.4,
    "unit": 0.4,
    "number is missing": 0.4,
    "other rows": 0.2,
    "plain condition is missing": 0.2,
    "other figures": 0.1,
}
"""How much each kind of sign tells, as a logarithm of odds, most fitted to planted faults; see `weighed`."""
_IN_RESULTS = {"rows differ": OTHER_ROWS}
"""What a result tells of another mode than `wrong_arithmetic`."""


def departures(
    mine: Sequence[WayStep],
    gold: Sequence[WayStep],
    core: Sequence[WayStep],
    every: Sequence[WayStep],
    scale: FigureRatio | None = None,
    shown: str = "",
) -> list[Departure]:
    """Returns in what calls differ from the gold's, what tells most first; both are in order and lead to a result.

    Args:
        mine: the calls of the attempt.
        gold: those of the gold.
        core: of these, the calls that cannot be left out.
        every: all calls of the gold, of which figures are right, too.
        scale: what was given to what is right, where the ratio is the same for all figures.
        shown: in what a table that was left differs, in words.
    """
    mine = _deciding(mine)
    compared = WaysBeside((mine, gold), _without_the_same(mine, gold, core), scale)
    signs = [*_of_sources(compared, mine, gold, core), *compared.signs()]
    has_other_rows = re.search(r"rows? (?:is|are) (?:missing|not expected)", shown) is not None
    results = {*(["rows differ"] if has_other_rows else []), *(["turned over"] if scale and scale.is_turned else [])}
    return weighed(signs, results, last_right(mine, every))


def last_right(mine: Sequence[WayStep], gold: Sequence[WayStep]) -> int:
    """Returns the place of the last call, before that which gave the result, with a figure that a call of the gold has.

    Only figures count that were in no result before, as what both have looked at tells nothing of what was computed.
    """
    right, seen, found = _computed(gold), set[float](), -1
    for one in mine[:-1]:
        new = {number for number in numbers_of(one.text) if figure(number).digits() >= _DIGITS} - seen
        if one.computes() and new and new <= right:
            found = one.place
        seen |= new
    return found


def _computed(steps: Sequence[WayStep]) -> set[float]:
    looked = {number for one in steps if not one.computes() for number in numbers_of(one.text)}
    return {number for one in steps if one.computes() for number in numbers_of(one.text)} - looked


def weighed(signs: Sequence[Sign], results: Collection[str], right_until: int = -1) -> list[Departure]:
    """Returns what signs tell together: those of one mode at one call add up, each kind once.

    What is found at calls until one that gave a right figure tells less.

    Args:
        signs: what was found, each with its call.
        results: kinds of signs that the result shows, whichever call made it, such as `rows differ`.
        right_until: place of the last call with a right figure; -1 without one.

    Returns:
        The departures, that of the greatest weight first, and of equal ones the last call's.
    """
    by_place = defaultdict[tuple[int, str], list[Sign]](list)
    for one in signs:
        by_place[(one.step.place, one.mode)].append(one)
    found = list[Departure]()
    for (_, mode), those in by_place.items():
        first = max(those, key=lambda one: WEIGHTS.get(one.kind, 0.0))
        kinds = {one.kind for one in those}
        if any(WEIGHTS.get(one) for one in kinds):
            kinds |= {one for one in results if _IN_RESULTS.get(one, OTHER_FIGURES) == mode}
        facts = tuple(fact for one in those for fact in (*one.missing, *one.extra))
        weight = sum(WEIGHTS.get(kind, 0.0) for kind in kinds) * (
            _BEFORE_RIGHT if first.step.place <= right_until else 1.0
        )
        words = first.words or _told(first.missing, first.extra)
        found.append(Departure(mode if weight else None, first.step, words, facts, weight))
    return sorted(found, key=lambda one: (-one.weight, -one.step.place))


def _deciding(steps: Sequence[WayStep]) -> list[WayStep]:
    """Returns calls with only what later ones need."""
    last = steps[-1]
    return [one if one.deciding is None or one is last else replace(one, facts=one.deciding.facts) for one in steps]


def _without_the_same(
    mine: Sequence[WayStep], gold: Sequence[WayStep], core: Sequence[WayStep]
) -> tuple[Sequence[WayStep], Sequence[WayStep], Sequence[WayStep]]:
    """Returns the calls without those that do the same in both, unless that are all of one side."""
    own, theirs = ([one for one in steps if not one.is_shared] for steps in (mine, gold))
    if not own or not theirs:
        return mine, gold, core
    places = {one.place for one in theirs}
    return own, theirs, [one for one in core if one.place in places]


def _told(missing: Sequence[CodeFact], extra: Sequence[CodeFact]) -> str:
    parts = [f"the gold has {_listed(missing)}"] if missing else []
    parts += [f"it has {_listed(extra)}"] if extra else []
    return ", ".join(parts)


def _listed(facts: Iterable[CodeFact]) -> str:
    told = [
        one.what if one.kind in ("where", "match", "column", "operator", "order") else f"{one.kind} {one.what}"
        for one in facts
    ]
    return "; ".join(f"`{one}`" for one in told[:_MOST_WORDS]) + ("; …" if len(told) > _MOST_WORDS else "")


def _of_sources(
    compared: WaysBeside, mine: Sequence[WayStep], gold: Sequence[WayStep], core: Sequence[WayStep]
) -> Iterator[Sign]:
    """Yields that other tables or files are read than the gold reads, or that some are not."""
    made = {one for step in (*mine, *gold) for one in step.touched.writes}
    wanted, read, needed = (
        {one for step in steps for one in step.touched.reads if not one.startswith(USER)} - made
        for steps in (gold, mine, core)
    )
    missing = sorted((wanted & needed) - read)
    named = [{name for step in steps for name in _named_by(step)} - made for steps in (mine, gold)]
    copies = {one for one in read - wanted if any(one.startswith(f"{name}_") for name in wanted)}
    extra = sorted((read - wanted) | (named[0] - named[1]) if missing else copies)
    if named[0] and named[1] and not named[0] & named[1] and _hardly_shares_columns(mine, core):
        extra = extra or sorted(named[0])
    beside, lost = sorted(named[0] - named[1]), sorted((named[1] - named[0]) & wanted - read)
    if beside and lost and not missing:  # in the place of what the gold may have looked at only
        extra, missing = extra or beside, lost
    facts = tuple(CodeFact("replaced" if extra else "from", one) for one in missing)
    if extra and (at := _reading(mine, extra)) is not None:
        words = f"it reads {', '.join(extra)}, the gold {', '.join(missing or wanted)}"
        yield Sign("another source", TABLE, at, facts, (), words)
    elif beside and (at := _reading(mine, beside)) is not None and {"join", "match"} & {one.kind for one in at.facts}:
        yield Sign("joined otherwise", OTHER_ROWS, at, words=f"it reads {', '.join(beside)} as well")
    elif missing:
        is_data = all(_DATA.search(one) for one in missing)
        kind, mode = ("another source", TABLE) if is_data else ("note is missing", OTHER_ROWS)
        at = compared.place_of(facts, [])
        yield Sign(kind, mode, at, facts, (), f"the gold reads {', '.join(missing)} as well")


def _hardly_shares_columns(mine: Sequence[WayStep], gold: Sequence[WayStep]) -> bool:
    """Returns whether most of the gold's columns are nowhere in the code of others."""
    wanted = {one.what for step in gold for one in step.facts if one.kind == "column"}
    own = {word for step in mine for word in step.words()}
    return len(wanted & own) * _HARDLY < len(wanted)


def _named_by(step: WayStep) -> set[str]:
    return {fact.what for fact in step.facts if fact.kind == "from" and "." not in fact.what}


def _reading(mine: Sequence[WayStep], names: Iterable[str]) -> WayStep | None:
    """Returns the first call that computes from one of these, or that looks at it."""
    found = [one for one in mine if (one.touched.reads | _named_by(one)) & set(names)]
    return next((one for one in found if one.computes()), found[0] if found else None)
