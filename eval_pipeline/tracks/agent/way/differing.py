"""In what the calls that led to a result differ from those of the gold, and at which of them."""

import re
from collections.abc import Collection, Iterable, Sequence

from eval_pipeline.core.values import value
from eval_pipeline.tracks.agent.way.chain import WayStep, facts_in
from eval_pipeline.tracks.agent.way.facts import FIGURES, ORDERS, ROWS, TEXTS, CodeFact, Facts
from eval_pipeline.tracks.agent.way.reads import USER

_MOST_WORDS = 3


@value
class Departure:
    """A difference from the gold.

    Attributes:
        mode: `wrong_table`, `wrong_filter_or_join` or `wrong_arithmetic`.
        step: the call that makes it.
        words: what the gold does there, and what was done.
        facts: what of it is missing or is there beside.
    """

    mode: str
    step: WayStep
    words: str
    facts: tuple[CodeFact, ...] = ()


def departures(mine: Sequence[WayStep], gold: Sequence[WayStep], known: Collection[str] = ()) -> list[Departure]:
    """Returns in what calls differ from the gold's, the graver first; both are in order and lead to a result.

    Args:
        mine: the calls of the attempt.
        gold: those of the gold.
        known: what the gold reads in all its calls.
    """
    if not mine or not gold:
        return []
    found = [*_of_sources(mine, gold, known)]
    missing, extra = _unlike(mine, gold)
    where = [*_of_kind(missing, ROWS)], [*_of_kind(extra, ROWS)]
    columns = [one for one in extra if one.kind == "column" and not _is_in(one.what, where[1])]
    replaced = [one for one in missing if one.kind == "column" and not _is_in(one.what, where[0])]
    if columns and replaced:
        words = f"it takes the column {_listed(columns)}, the gold {_listed(replaced)}"
        found.append(Departure("wrong_table", _place(mine, gold, replaced, columns), words, (*replaced, *columns)))
    for mode, kinds in (("wrong_filter_or_join", ROWS), ("wrong_arithmetic", FIGURES)):
        lost, more = [*_of_kind(missing, kinds)], [*_of_kind(extra, kinds)]
        if mode == "wrong_arithmetic" and not columns:
            lost += replaced
        if lost or more:
            found.append(Departure(mode, _place(mine, gold, lost, more), _told(lost, more), (*lost, *more)))
    if turned := [one for one in _of_kind(extra, ORDERS) if _turned(one) in missing]:
        first = [_turned(turned[0])], turned[:1]
        found.append(Departure("wrong_arithmetic", _place(mine, gold, *first), _told(*first), tuple(turned)))
    lost, more = [*_of_kind(missing, TEXTS)], [*_of_kind(extra, TEXTS)]
    if not found and (lost or more):
        found.append(Departure("wrong_arithmetic", _place(mine, gold, lost, more), _told(lost, more), (*lost, *more)))
    return found


def _turned(fact: CodeFact) -> CodeFact:
    """Returns a fact about an order the other way round."""
    left, sign, right = re.split(r" ([-+*/%]+) ", f" {fact.what} ", maxsplit=1)
    return CodeFact(fact.kind, f"{right.strip()} {sign} {left.strip()}")


def _of_sources(mine: Sequence[WayStep], gold: Sequence[WayStep], known: Collection[str]) -> Iterable[Departure]:
    own = {one for step in gold for one in step.touched.writes}
    wanted = {one for step in gold for one in step.touched.reads if not one.startswith(USER)} - own
    made = {one for step in mine for one in step.touched.writes}
    read = {one for step in mine for one in step.touched.reads if not one.startswith(USER)} - made
    missing, extra = sorted(wanted - read), sorted(read - wanted - set(known))
    if missing and extra:
        at = next(step for step in mine if step.touched.reads & set(extra))
        facts = tuple(CodeFact("from", one) for one in missing)
        yield Departure("wrong_table", at, f"it reads {', '.join(extra)}, the gold {', '.join(missing)}", facts)
    elif missing:
        facts = tuple(CodeFact("from", one) for one in missing)
        at = _place(mine, gold, facts, [])
        yield Departure("wrong_filter_or_join", at, f"the gold reads {', '.join(missing)} as well", facts)


def _unlike(mine: Sequence[WayStep], gold: Sequence[WayStep]) -> tuple[list[CodeFact], list[CodeFact]]:
    """Returns the facts that only the gold has, and those that it has not; where there are none, how often counts."""
    own, wanted = facts_in(mine), facts_in(gold)
    missing, extra = [one for one in wanted if one not in own], [one for one in own if one not in wanted]
    if not missing and not extra:
        missing, extra = list(wanted - own), list(own - wanted)
    return missing, extra


def _of_kind(facts: Iterable[CodeFact], kinds: Collection[str]) -> Iterable[CodeFact]:
    return (one for one in facts if one.kind in kinds)


def _is_in(column: str, conditions: Iterable[CodeFact]) -> bool:
    return any(column in one.what.split() for one in conditions)


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
    return max(mine, key=lambda step: (max(_likeness(step.facts, one.facts) for one in theirs), step.place))


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
        one.what if one.kind in ("where", "column", "operator", "order") else f"{one.kind} {one.what}" for one in facts
    ]
    return "; ".join(f"`{one}`" for one in told[:_MOST_WORDS]) + ("; …" if len(told) > _MOST_WORDS else "")
