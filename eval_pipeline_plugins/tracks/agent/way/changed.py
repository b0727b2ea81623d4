"""Where an attempt that left a wrong state went wrong: the call that wrote what differs, and what led to it."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from eval_pipeline_plugins.tracks.agent.way.answered import UNTOLD, FirstWrong, told_by
from eval_pipeline_plugins.tracks.agent.way.chain import WayStep, core_of, leading_to
from eval_pipeline_plugins.tracks.agent.way.differing import departures
from eval_pipeline_plugins.tracks.agent.way.looked import Unseen
from eval_pipeline_plugins.tracks.agent.way.reads import USER
from eval_pipeline_plugins.tracks.agent.way.values import FigureRatio, figure, numbers_of, slips

_ACTING = frozenset({"sql", "python", "shell", "write_file"})


def of_state(
    mine: Sequence[WayStep],
    gold: Sequence[WayStep],
    wrong: Sequence[str],
    beside: Sequence[str],
    unread: Unseen,
    scale: FigureRatio | None = None,
    shown: str = "",
) -> FirstWrong:
    """Tells where an attempt left the way that ends with a wrong state.

    Args:
        mine: all its calls.
        gold: all the gold's.
        wrong: names of files and tables that are not as the gold leaves them.
        beside: names of those that the gold leaves as they were, and the attempt does not.
        unread: what the gold reads and the attempt never did.
        scale: a wrong figure to the right one.
        shown: in what files and tables differ, in words.
    """
    for name in wrong:
        if (more := _with_more_columns(mine, name, shown)) is not None:
            return FirstWrong("side_effect", more.place, f"it gives {name} another column")
        found = _of_target(mine, gold, name, unread, scale, shown)
        if found is not UNTOLD:
            return found
    if beside and (step := next(_writing(mine, beside), None)) is not None:
        return FirstWrong("side_effect", step.place, f"it changes {', '.join(beside)}")
    unwritten = [name for name in wrong if next(_writing(mine, (name,)), None) is None]
    if mine and unwritten:
        return FirstWrong(None, mine[-1].place, f"{', '.join(unwritten)} was never written")
    return UNTOLD


def _of_target(
    mine: Sequence[WayStep], gold: Sequence[WayStep], name: str, unread: Unseen, scale: FigureRatio | None, shown: str
) -> FirstWrong:
    """Tells of one file or table that is wrong where it became so."""
    theirs = list(_writing(gold, (name,)))
    did = _lasting([one for one in _writing(mine, (name,)) if one.step.error_class is None], name)
    if not theirs:
        return UNTOLD
    if (more := _beside_the_same(did, theirs)) is not None:
        return FirstWrong("side_effect", more.place, f"it changes {name} once more than the gold")
    if not did:
        other = _elsewhere(mine, gold, name)
        words = "" if other is None else f"it writes {', '.join(sorted(other.touched.writes))}, the gold {name}"
        return UNTOLD if other is None else FirstWrong("wrong_table", other.place, words)
    steps = _all_leading(mine, did)
    parts = departures(steps, _all_leading(gold, theirs), core_of(gold, theirs), gold, scale, shown)
    found = told_by(parts, unread)
    is_by_hand = did[-1].name == "sql" and {one.what for one in did[-1].facts if one.kind == "from"} <= {name}
    is_unasked = any(one.startswith(USER) for one in unread.names)
    may_be = (is_by_hand and not is_unasked) or found.mode != "not_looked"
    literal = _written_otherwise(did[-1], mine, theirs[-1]) if may_be else UNTOLD
    return found if literal is UNTOLD else literal


def _writing(steps: Sequence[WayStep], names: Sequence[str]) -> Iterator[WayStep]:
    for one in steps:
        if one.name in _ACTING and any(_meets(name, written) for name in names for written in one.touched.writes):
            yield one


def _lasting(did: Sequence[WayStep], name: str) -> list[WayStep]:
    """Returns the calls that write a file without those whose file a later one writes anew."""
    if did and _is_file(name) and name not in did[-1].touched.reads and _ADDS.search(did[-1].code) is None:
        return [did[-1]]
    return list(did)


_ADDS = re.compile(r">>|,mode=['\"]a|,['\"]a['\"]|sed-i")
_COLUMNS = re.compile(r"\.(\w+): has the columns ([\w, ]+), not ([\w, ]+)")


def _with_more_columns(mine: Sequence[WayStep], name: str, shown: str) -> WayStep | None:
    """Returns the call that gives a table a column that the gold's has not, if that is all in which it differs."""
    for table, own, wanted in (one.groups() for one in _COLUMNS.finditer(shown)):
        if table == name and set(wanted.split(", ")) < set(own.split(", ")):
            return next((one for one in _writing(mine, (name,)) if re.search(r"alter\s*table", one.code)), None)
    return None


def _meets(name: str, written: str) -> bool:
    return name == written or fnmatchcase(written, name)


def _all_leading(steps: Sequence[WayStep], ends: Sequence[WayStep]) -> list[WayStep]:
    found = {one.place: one for end in ends for one in leading_to(steps, end)}
    return [found[place] for place in sorted(found)]


def _beside_the_same(did: Sequence[WayStep], theirs: Sequence[WayStep]) -> WayStep | None:
    """Returns the first call that writes the same again, where all that the gold does is done as well."""
    if not all(any(one.facts == other.facts and one.facts for one in did) for other in theirs):
        return None
    return next((one for one in did if not any(one.facts == other.facts for other in theirs)), None)


def _elsewhere(mine: Sequence[WayStep], gold: Sequence[WayStep], name: str) -> WayStep | None:
    """Returns the call that writes something of the same kind which the gold never does."""
    theirs = {one for step in gold for one in step.touched.writes}
    done = (one for one in mine if one.step.error_class is None and one.name in _ACTING)
    return next((one for one in done if any(_kind(path) == _kind(name) for path in one.touched.writes - theirs)), None)


def _is_file(name: str) -> bool:
    return "." in name


def _kind(name: str) -> str:
    return name.rpartition(".")[2] if _is_file(name) else ""


def _written_otherwise(did: WayStep, mine: Sequence[WayStep], gold: WayStep) -> FirstWrong:
    """Tells of figures that were written by hand whether they are in results."""
    texts = [_figures(one) for one in (did, gold)]
    odd = [one for one in texts[0] if one not in texts[1]] if did.name == gold.name else []
    if did.name == "write_file" and gold.name != did.name:
        before = [number for one in mine if one.place < did.place for number in numbers_of(one.text)]
        odd = [one for one in texts[0] if not next(slips(figure(one), before), "")]
    shown = {number for one in mine if one.place < did.place for number in numbers_of(one.text)}
    if any(one in shown for one in odd):  # of rows that are typed, what is in no result
        is_typed = did.name == "sql" and not any(one.kind == "select" for one in did.facts)
        odd = [one for one in odd if one not in shown and -one not in shown] if is_typed else []
    told = ", ".join(f"{one:,g}" for one in odd[:3])
    if not odd:
        return UNTOLD
    return FirstWrong("invented", did.place, f"{told} was written, which is in no result")


def _figures(step: WayStep) -> Sequence[float]:
    """Returns the figures of a text that is written, or those that a statement sets."""
    if step.name == "write_file" and not step.facts:
        return numbers_of(str(step.step.calls[0].arguments.get("text", "")))
    return [float(one.what) for one in step.facts if one.kind == "number"] if step.name != "python" else ()
