"""In what the calls that led to a result differ from those of the gold, and at which of them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from eval_pipeline.core.values import value
from eval_pipeline.tracks.agent.way.chain import WayStep, facts_in
from eval_pipeline.tracks.agent.way.facts import FIGURES, ORDERS, ROWS, TEXTS, CodeFact, Facts
from eval_pipeline.tracks.agent.way.reads import USER

_MOST_WORDS, _LAST_DAYS = 3, 28


@value
class Departure:
    """A difference from the gold.

    Attributes:
        mode: `wrong_table`, `wrong_filter_or_join` or `wrong_arithmetic`.
        step: the call that makes it.
        words: what the gold does there, and what was done.
        facts: what is missing, and then what is there beside.
        missing: how many of them are missing.
    """

    mode: str
    step: WayStep
    words: str
    facts: tuple[CodeFact, ...] = ()
    missing: int = 0


def departures(
    mine: Sequence[WayStep], gold: Sequence[WayStep], core: Sequence[WayStep] | None = None
) -> list[Departure]:
    """Returns in what calls differ from the gold's, the graver first; both are in order and lead to a result.

    Conditions that are only written otherwise, with the same constants, are no graver than other figures.

    Args:
        mine: the calls of the attempt.
        gold: those of the gold.
        core: of these, the calls that cannot be left out; all without it.
    """
    core = gold if core is None else core
    if not mine or not gold:
        return []
    missing, extra = _unlike(mine, gold, core)
    found = [*_of_sources(mine, gold, core), *_of_columns(mine, gold, missing, extra)]
    rows = _of_kinds(mine, gold, [*_of_kind(missing, ROWS)], [*_of_kind(extra, ROWS)], "wrong_filter_or_join")
    lost = (
        []
        if found
        else [one for one in _of_kind(_alone(missing, gold, mine), ("column",)) if not _is_in(one.what, rows)]
    )
    figures = _of_kinds(
        mine, gold, [*_of_kind(missing, FIGURES), *lost], [*_of_kind(extra, FIGURES)], "wrong_arithmetic"
    )
    found += [*figures, *rows] if figures and rows and _are_alike(rows[0]) else [*rows, *figures]
    turned = [one for one in _of_kind(extra, ORDERS) if _turned(one) in missing]
    found += _of_kinds(mine, gold, [_turned(one) for one in turned], turned, "wrong_arithmetic")
    texts = [*_of_kind(missing, TEXTS)], [*_of_kind(extra, TEXTS)]
    return found or _of_kinds(mine, gold, *texts, "wrong_arithmetic")


def _of_kinds(
    mine: Sequence[WayStep], gold: Sequence[WayStep], lost: Sequence[CodeFact], more: Sequence[CodeFact], mode: str
) -> list[Departure]:
    if not lost and not more:
        return []
    return [Departure(mode, _place(mine, gold, lost, more), _told(lost, more), (*lost, *more), len(lost))]


def _of_columns(
    mine: Sequence[WayStep], gold: Sequence[WayStep], missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> Iterable[Departure]:
    """Yields that another column is taken, which is in no condition."""
    where = [one for one in (*missing, *extra) if one.kind in ROWS]
    columns, replaced = (
        [one for one in facts if one.kind == "column" and not any(one.what in told.what.split() for told in where)]
        for facts in (_alone(extra, mine, gold), _alone(missing, gold, mine))
    )
    if columns and replaced:
        words = f"it takes the column {_listed(columns)}, the gold {_listed(replaced)}"
        yield Departure("wrong_table", _place(mine, gold, replaced, columns), words, (*replaced, *columns))


def _alone(facts: Iterable[CodeFact], own: Sequence[WayStep], others: Sequence[WayStep]) -> list[CodeFact]:
    """Returns the columns that are nowhere in the code of others, and that the calls do not make themselves."""
    theirs = {word for step in others for word in step.words()}
    made = {name for step in own for name in step.makes}
    return [one for one in facts if one.what not in theirs and one.what not in made]


def _are_alike(rows: Departure) -> bool:
    """Returns whether all that differs in conditions is how they are written: the constants are the same."""
    own, other = Counter[str](), Counter[str]()
    halves = rows.facts[: rows.missing], rows.facts[rows.missing :]
    for facts, into in zip(halves, (own, other), strict=True):
        for one in facts:
            into.update(_constants(one) if one.kind in ("where", "distinct", "limit") else ())
    return set(own) == set(other)


def _constants(fact: CodeFact) -> Iterable[str]:
    """Yields the constant of a condition; of a day its parts, without those that only bound a year or a month."""
    told = fact.what.rpartition(" ")[2] if fact.kind == "where" else fact.what
    days = re.fullmatch(r"(\d{4})-(\d\d)(?:-(\d\d))?", told)
    if days is None:
        yield told
        return
    year, month, day = days.groups()
    yield year
    bounds_year = (month, day or "01") in (("01", "01"), ("12", "31"))
    if not bounds_year:
        yield str(int(month))
        if day is not None and day != "01" and int(day) < _LAST_DAYS:
            yield str(int(day))


def _turned(fact: CodeFact) -> CodeFact:
    """Returns a fact about an order the other way round."""
    left, sign, right = re.split(r" ([-+*/%]+) ", f" {fact.what} ", maxsplit=1)
    return CodeFact(fact.kind, f"{right.strip()} {sign} {left.strip()}")


def _of_sources(mine: Sequence[WayStep], gold: Sequence[WayStep], core: Sequence[WayStep]) -> Iterable[Departure]:
    own = {one for step in gold for one in step.touched.writes}
    wanted = {one for step in gold for one in step.touched.reads if not one.startswith(USER)} - own
    made = {one for step in mine for one in step.touched.writes}
    read = {one for step in mine for one in step.touched.reads if not one.startswith(USER)} - made
    needed = {one for step in core for one in step.touched.reads}
    missing, extra = sorted((wanted & needed) - read), sorted(read - wanted)
    if missing and extra:
        at = next(step for step in mine if step.touched.reads & set(extra))
        facts = tuple(CodeFact("replaced", one) for one in missing)
        yield Departure("wrong_table", at, f"it reads {', '.join(extra)}, the gold {', '.join(missing)}", facts)
    elif missing:
        facts = tuple(CodeFact("from", one) for one in missing)
        at = _place(mine, gold, facts, [])
        mode = "wrong_table" if all("." in one for one in missing) else "wrong_filter_or_join"  # files are no joins
        yield Departure(mode, at, f"the gold reads {', '.join(missing)} as well", facts)


def _unlike(
    mine: Sequence[WayStep], gold: Sequence[WayStep], core: Sequence[WayStep]
) -> tuple[list[CodeFact], list[CodeFact]]:
    """Returns the facts that only the gold has, and those that it has not; where there are none, how often counts."""
    own, wanted, needed = facts_in(mine), facts_in(gold), facts_in(core)
    missing, extra = [one for one in needed if one not in own], [one for one in own if one not in wanted]
    if not missing and not extra:
        missing, extra = list(needed - own), list(own - wanted)
    return missing, extra


def _of_kind(facts: Iterable[CodeFact], kinds: Collection[str]) -> Iterable[CodeFact]:
    return (one for one in facts if one.kind in kinds)


def _is_in(column: str, rows: Iterable[Departure]) -> bool:
    return any(column in one.what.split() for departure in rows for one in departure.facts)


def _place(
    mine: Sequence[WayStep], gold: Sequence[WayStep], missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> WayStep:
    """Returns the call that has what the gold has not, or else the one most like that of the gold which has it."""
    if extra:
        wanted = facts_in(gold)
        for step in mine:
            if any(step.facts[one] > wanted[one] or (one in step.facts and one not in wanted) for one in extra):
                return step
    theirs = [step for step in gold if any(one in step.facts or _reads(step, one) for one in missing)] or [gold[-1]]
    is_taken = all(one.kind in ("column", "operator", "factor", "from") for one in missing)
    computing = mine if is_taken else [step for step in mine if step.computes()] or mine
    return max(computing, key=lambda step: (max(_likeness(step.facts, one.facts) for one in theirs), step.place))


def _reads(step: WayStep, fact: CodeFact) -> bool:
    return fact.kind == "from" and fact.what in step.touched.reads


def _likeness(one: Facts, other: Facts) -> float:
    either = (one | other).total()
    return (one & other).total() / either if either else 0.0


def _told(missing: Sequence[CodeFact], extra: Sequence[CodeFact]) -> str:
    parts = [f"the gold has {_listed(missing)}"] if missing else []
    parts += [f"it has {_listed(extra)}"] if extra else []
    return ", ".join(parts)


def _listed(facts: Sequence[CodeFact]) -> str:
    told = [
        one.what if one.kind in ("where", "match", "column", "operator", "order") else f"{one.kind} {one.what}"
        for one in facts
    ]
    return "; ".join(f"`{one}`" for one in told[:_MOST_WORDS]) + ("; …" if len(told) > _MOST_WORDS else "")
