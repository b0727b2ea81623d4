"""Finds the smallest sets of relaxations under which something holds."""

from collections.abc import Callable, Iterable

from eval_pipeline.table_comparison.relaxations import MILDEST_FIRST, NONE, Set

_MOST_SETS = 8


def smallest_sets(holds: Callable[[Set], bool], stages: Iterable[Set]) -> tuple[Set, ...]:
    """Returns the sets that are minimal under inclusion, those that lose least first; none if nothing is enough.

    What one needs in any case is found first. If that is not enough, one minimal set is found by taking away what can
    go; each further one must lack something of each of those found (the hitting sets of Reiter 1987).

    Args:
        holds: whether it holds under a set; if it does, it does under larger ones.
        stages: the relaxations to try, in growing sets; those of the first set that is enough are tried.
    """
    if holds(NONE):
        return (NONE,)
    relevant = next(filter(holds, stages), None)
    if relevant is None:
        return ()
    needed = frozenset(one for one in relevant if not holds(relevant - {one}))
    if holds(needed):
        return (needed,)
    found: list[Set] = []
    untried: list[Set] = [NONE]
    seen: set[Set] = set()
    while untried and len(found) < _MOST_SETS:
        without = untried.pop(0)
        if without in seen:
            continue
        seen.add(without)
        fitting = next((one for one in found if not one & without), None)
        if fitting is None:
            if not holds(relevant - without):
                continue
            fitting = _shrunk(holds, relevant - without, needed)
            found.append(fitting)
        untried += [without | {one} for one in MILDEST_FIRST if one in fitting - needed]
    return tuple(sorted(found, key=_loss))


def _shrunk(holds: Callable[[Set], bool], start: Set, needed: Set) -> Set:
    left = start
    for one in reversed(MILDEST_FIRST):
        if one in left and one not in needed and holds(left - {one}):
            left -= {one}
    return left


def _loss(found: Set) -> tuple[int, list[int]]:
    return len(found), sorted((MILDEST_FIRST.index(one) for one in found), reverse=True)
