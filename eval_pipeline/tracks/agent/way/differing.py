"""In what the calls that led to a result differ from those of the gold, and at which of them."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import product

from eval_pipeline.tracks.agent.way.chain import Departure, WayStep, facts_in, is_own, numbers_in, place_of
from eval_pipeline.tracks.agent.way.facts import FIGURES, LIMITS, ORDERS, ROWS, TEXTS, CodeFact, plainly
from eval_pipeline.tracks.agent.way.looked import of_sources
from eval_pipeline.tracks.agent.way.values import FigureRatio, numbers_of

_MOST_WORDS, _ALIKE = 3, 0.8
_COUNTED = CodeFact("aggregate", "count")
_PLAIN = frozenset({"0", "1", "null", ""})
"""Constants that are written, or not, in conditions that are the same."""


def departures(
    mine: Sequence[WayStep],
    gold: Sequence[WayStep],
    core: Sequence[WayStep] | None = None,
    scale: FigureRatio | None = None,
) -> list[Departure]:
    """Returns in what calls differ from the gold's, the graver first; both are in order and lead to a result.

    Conditions that are only written otherwise, with the same constants, are no graver than other figures.

    Args:
        mine: the calls of the attempt.
        gold: those of the gold.
        core: of these, the calls that cannot be left out; all without it.
        scale: what was given to what is right, where the ratio is the same for all figures.
    """
    core = gold if core is None else core
    if not mine or not gold:
        return []
    sources = list(of_sources(mine, gold, core))
    whole, (mine, gold, core) = (mine, gold), _without_the_same(mine, gold, core)
    missing, extra = _unlike(whole, mine, gold, core)
    found = [*_of_signs(mine, gold, missing, extra), *sources, *_of_aggregates(mine, gold, missing, extra)]
    found += _of_columns(*whole, missing, extra)
    found = found or [*_of_selected(mine, gold, missing, extra)]
    rows = _of_kinds(mine, gold, [*_of_kind(missing, ROWS)], [*_of_kind(extra, ROWS)], "wrong_filter_or_join")
    constants = _explaining(scale, missing, extra) if scale else ()
    computed = constants or ([*_of_kind(missing, FIGURES)], [*_of_kind(extra, FIGURES)])
    figures = _of_kinds(mine, gold, *computed, "wrong_arithmetic")
    found += [*figures, *rows] if figures and rows and _are_alike(rows[0], mine, gold) else [*rows, *figures]
    if scale and scale.is_turned:
        found = [
            *(one for one in found if one.mode == "wrong_arithmetic"),
            Departure("wrong_arithmetic", whole[0][-1], "it is turned over"),
        ]
    if scale and (constants or scale.is_telling()):
        found.sort(key=lambda one: one.mode != "wrong_arithmetic")
    texts = [*_of_kind(missing, TEXTS)], [*_of_kind(extra, TEXTS)]
    limits = [*_of_kind(missing, LIMITS)], [*_of_kind(extra, LIMITS)]
    found = found or _of_kinds(mine, gold, *limits, "wrong_filter_or_join")
    lists = [sorted(one.what for one in facts if one.kind == "select") for facts in texts]
    is_turned = [sorted(", ".join(one).split(", ")) for one in lists]
    mode = "wrong_filter_or_join" if is_turned[0] != is_turned[1] else "wrong_arithmetic"
    found += _of_kinds(mine, gold, *texts, mode)
    return found or [*_of_cells(*whole)]


def _of_cells(mine: Sequence[WayStep], gold: Sequence[WayStep]) -> Iterable[Departure]:
    """Yields what makes nearly all that a call of the gold makes, for a later call."""
    for one, other in product(mine[:-1], gold):
        words = one.words(), other.words()
        is_other = one.makes and one.makes == other.makes and not one.is_shared
        if is_other and len(words[0] & words[1]) > _ALIKE * len(words[0] | words[1]):
            yield Departure("wrong_filter_or_join", one, "what it makes there is not what the gold makes")


def _without_the_same(
    mine: Sequence[WayStep], gold: Sequence[WayStep], core: Sequence[WayStep]
) -> tuple[Sequence[WayStep], Sequence[WayStep], Sequence[WayStep]]:
    """Returns the calls without those that do the same in both, unless that are all of one side."""
    own, theirs = ([one for one in steps if not one.is_shared] for steps in (mine, gold))
    if not own or not theirs:
        return mine, gold, core
    places = {one.place for one in theirs}
    return own, theirs, [one for one in core if one.place in places]


def _explaining(
    scale: FigureRatio, missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> tuple[list[CodeFact], list[CodeFact]] | tuple[()]:
    """Returns the constant of the gold and the one in its place, or one of the two, by which the figures differ."""
    lost, more = ([one for one in facts if one.kind == "number"] for facts in (missing, extra))
    for one, other in product([*lost, None], [*more, None]):
        if scale.is_by(*(float(fact.what) if fact else 1.0 for fact in (one, other))):
            return [one] if one else [], [other] if other else []
    return ()


def _of_kinds(
    mine: Sequence[WayStep], gold: Sequence[WayStep], lost: Sequence[CodeFact], more: Sequence[CodeFact], mode: str
) -> list[Departure]:
    if not lost and not more:
        return []
    return [Departure(mode, place_of(mine, gold, lost, more), _told(lost, more), (*lost, *more), len(lost))]


def _of_columns(
    mine: Sequence[WayStep], gold: Sequence[WayStep], missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> Iterable[Departure]:
    """Yields that another column is taken, which is in no condition."""
    where = [one for one in (*missing, *extra) if one.kind in ROWS]
    columns, replaced = (
        [one for one in facts if one.kind == "column" and not any(one.what in told.what.split() for told in where)]
        for facts in (_alone(extra, mine, gold), _alone(missing, gold, mine))
    )
    others = {one for step in mine for one in step.touched.reads} - {one for step in gold for one in step.touched.reads}
    if columns and replaced and not others:
        words = f"it takes the column {_listed(columns)}, the gold {_listed(replaced)}"
        yield Departure("wrong_table", place_of(mine, gold, replaced, columns), words, (*replaced, *columns))


def _of_selected(
    mine: Sequence[WayStep], gold: Sequence[WayStep], missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> Iterable[Departure]:
    """Yields that a list of columns has another one in the place of one that is nowhere else."""
    lost = {one.what for one in missing if one.kind == "column"}
    for one, other in product(_of_kind(missing, ("select",)), _of_kind(extra, ("select",))):
        halves = one.what.split(", "), other.what.split(", ")
        pairs = [_without_the_same_words(*pair) for pair in zip(*halves, strict=False) if pair[0] != pair[1]]
        if (
            len(halves[0]) == len(halves[1])
            and pairs
            and all(gold in lost and own.isidentifier() for gold, own in pairs)
        ):
            words = f"it takes `{other.what}`, the gold `{one.what}`"
            yield Departure("wrong_table", place_of(mine, gold, [one], [other]), words, (one, other), 1)


def _without_the_same_words(one: str, other: str) -> tuple[str, str]:
    """Returns two columns without what is done with both, as in `sum a` and `sum b`."""
    halves = one.split(), other.split()
    left, right = (" ".join(word for word in half if word not in rest) for half, rest in (halves, halves[::-1]))
    return left, right


def _of_signs(
    mine: Sequence[WayStep], gold: Sequence[WayStep], missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> Iterable[Departure]:
    """Yields conditions that differ in nothing but how they compare."""
    lost, more = (
        {
            one.what.replace(one.what.split()[-2], "?"): one
            for one in _of_kind(facts, ("where",))
            if len(one.what.split()) > 2
        }
        for facts in (missing, extra)
    )
    for same in lost.keys() & more.keys():
        yield from _of_kinds(mine, gold, [lost[same]], [more[same]], "wrong_filter_or_join")


def _of_aggregates(
    mine: Sequence[WayStep], gold: Sequence[WayStep], missing: Sequence[CodeFact], extra: Sequence[CodeFact]
) -> Iterable[Departure]:
    """Yields that another aggregate is made of figures."""
    lost, more = ([one for one in _of_kind(facts, ("aggregate",)) if one != _COUNTED] for facts in (missing, extra))
    if len(lost) == len(more) == 1:
        yield from _of_kinds(mine, gold, lost, more, "wrong_arithmetic")
    for one, other in product(_of_kind(missing, ORDERS), _of_kind(extra, ORDERS)):
        if _is_turned(one, other):
            yield from _of_kinds(mine, gold, [one], [other], "wrong_arithmetic")


def _alone(facts: Iterable[CodeFact], own: Sequence[WayStep], others: Sequence[WayStep]) -> list[CodeFact]:
    """Returns the columns that are nowhere in the code of others, and that the calls do not make themselves."""
    theirs = {word for step in others for word in step.words()}
    made = {name for step in own for name in step.makes}
    return [one for one in facts if one.what not in theirs and one.what not in made]


def _are_alike(rows: Departure, mine: Sequence[WayStep], gold: Sequence[WayStep]) -> bool:
    """Returns whether all that differs in conditions is how they are written: the other has the constants, too."""
    halves = (rows.facts[: rows.missing], mine), (rows.facts[rows.missing :], gold)
    columns = {one.what for step in (*mine, *gold) for one in step.facts if one.kind == "column"}
    for facts, others in halves:
        theirs = {word.lstrip("0") for step in others for word in step.words()}
        told = {_constant(one) for one in facts if one.kind in ("where", "distinct")} - _PLAIN
        told |= {word for one in facts if one.kind in ("match", "where") for word in one.what.split()} & columns
        if {word.lstrip("0") for one in told for word in re.findall(r"\w+", one.lower())} - theirs:
            return False
    return True


def _constant(fact: CodeFact) -> str:
    return fact.what.rpartition(" ")[2] if fact.kind == "where" else fact.what


def _is_turned(one: CodeFact, other: CodeFact) -> bool:
    """Returns whether two columns are reckoned with in another way, or the other way round."""
    left, right = (re.split(r" ([-+*/%]+) ", f" {fact.what} ", maxsplit=1) for fact in (one, other))
    pairs = [{half.strip() for half in told[::2]} for told in (left, right)]
    return pairs[0] == pairs[1] and len(pairs[0] - {""}) > 1 and (left[1] != right[1] or left[1] in ("-", "/"))


def _unlike(
    whole: tuple[Sequence[WayStep], Sequence[WayStep]],
    mine: Sequence[WayStep],
    gold: Sequence[WayStep],
    core: Sequence[WayStep],
) -> tuple[list[CodeFact], list[CodeFact]]:
    """Returns the facts that only the gold has, and those that it has not; where there are none, how often counts."""
    own, wanted, needed = (plainly(facts_in(steps)) for steps in (mine, gold, core))
    missing, extra = [one for one in needed if one not in own], [one for one in own if one not in wanted]
    known = set.intersection(*({name for step in steps for name in step.makes} for steps in whole))
    missing, extra = ([one for one in facts if one.kind != "over" or one.what in known] for facts in (missing, extra))
    extra = [one for one in extra if one != _COUNTED or one in mine[-1].facts]  # as it was looked at on the way
    looked_up = [one for one in extra if _is_looked_up(one, mine)]
    extra = [one for one in extra if one not in looked_up] or extra
    if not missing and not extra:
        missing, extra = list(needed - own), list(own - wanted)
    return missing, extra


def _is_looked_up(fact: CodeFact, mine: Sequence[WayStep]) -> bool:
    """Returns whether a condition asks for what an earlier call gave."""
    wanted = set(filter(is_own, numbers_in(fact.what.rpartition(" = ")[2]))) if fact.kind == "where" else set()
    place = next((at for at, one in enumerate(mine) if fact in one.facts), 0)
    given = {number for one in mine[:place] if one.computes() for number in numbers_of(one.text)}
    return bool(wanted) and wanted <= given


def _of_kind(facts: Iterable[CodeFact], kinds: Collection[str]) -> Iterable[CodeFact]:
    return (one for one in facts if one.kind in kinds)


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
