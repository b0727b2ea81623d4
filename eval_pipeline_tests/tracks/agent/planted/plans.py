"""Reads planted faults: right ways through tasks, and what goes another way at a known call.

A file of `faults/`, or of `held_back/` and `unseen/`, which nobody reads to improve what finds faults, has by task:

- `ways`: right ways by name; a way has its calls by name, in order. A call is `{tool: argument}` as in a gold; the name
  of a database stands for `sql` in it. The way `gold` is the case's own; its calls are named 0, 1, … and `answer`.
- `right`: ways that are right, too, and `faults`: each with `mode` and `at`, the name of the wrong call (`end` for the
  last step, nothing where the world failed).

A file may have `detours`: calls that go `first` in all ways of a task that has `right`, and `last` before its answer.

Each of `right` and `faults` is `calls`, written whole, or an edit of the way `of`: `without` some calls, `swap` (texts
in a call), `put` (another call of that name), `before` and `after` (more calls), `order`, `answer`, `last` (nothing is
called after it), `repeat` (a call, so often). `together` lists calls that are made at once, `says` has what the model
says with a call, `limits` replaces those of the case, and at `fails` the world ends. The answer may be `{of: call}`,
the last line that it gave, or what `find` finds there; in a text `<<call|pattern>>` is that.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER

HERE = Path(__file__).parent
SUITES = {
    "agents_sample": HERE.parents[3] / "data" / "suites" / "agents_sample",
    "errands": HERE / "suite",
    "trades": HERE / "unseen" / "suite",
}
MODES = (
    "not_looked",
    "wrong_table",
    "wrong_filter_or_join",
    "wrong_arithmetic",
    "right_not_answered",
    "invented",
    "gave_up",
    "out_of_budget",
    "forbidden",
    "harness",
)
KINDS = (*MODES, "side_effect")
"""All modes that are planted; the last one in `FRESH` and `BLIND` alone, which have no `harness`."""
END = "end"
READ, HELD_BACK, FRESH, BLIND = "faults/*", "held_back/lat*", "held_back/fresh_*", "held_back/blind_*"
UNSEEN = "unseen/new_*"
MORE = "unseen/more_*"
"""Both in worlds of their own; as many filters as joins are wrong, and there is no `side_effect`."""
Calls = dict[str, Mapping[str, Any]]
_MARK = re.compile(r"<<(\w+)\|(.+?)>>", re.DOTALL)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Plan:
    """One attempt that is to be made.

    Attributes:
        id: file, task and number; the tests name it.
        suite: a key of `SUITES`.
        calls: by name, in order.
        together: calls that are made at once, by name.
        mode: its fault; None for a right way.
        at: the name of the wrong call, or `end`; None without one.
        limits: of the case, if others than its own.
        fails: the call at which the world ends.
        is_whole: whether it is written whole, and not as an edit of a way.
        says: what the model says when it makes a call, by the call's name.
    """

    id: str
    suite: str
    task: str
    calls: Calls
    together: Sequence[Sequence[str]] = ()
    mode: str | None = None
    at: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    fails: str | None = None
    is_whole: bool = False
    says: Mapping[str, str] = field(default_factory=dict)

    def moves(self) -> list[list[str]]:
        """Returns what is called after each word of the model."""
        first = {names[0]: list(names) for names in self.together}
        inner = {name for names in self.together for name in names[1:]}
        return [first.get(name, [name]) for name in self.calls if name not in inner]


@cache
def raw_cases(suite: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns the cases of a suite as they are written, by id."""
    files = sorted((SUITES[suite] / "cases").glob("*.yaml"))
    return {raw["id"]: raw for file in files for raw in yaml.load(file.read_text(), Loader=_Loader)}


@cache
def plans(names: str = READ) -> tuple[Plan, ...]:
    """Returns all plans of the files of these names, ways that are right among them."""
    files = sorted(HERE.glob(f"{names}.yaml"))
    return tuple(plan for file in files for plan in _of_file(file.stem, yaml.load(file.read_text(), Loader=_Loader)))


def _of_file(name: str, told: Mapping[str, Any]) -> Iterator[Plan]:
    for task, one in told["tasks"].items():
        ways = {"gold": _gold(raw_cases(told["suite"])[task]), **one.get("ways", {})}
        edits = [edit for kind in ("right", "faults") for edit in one.get(kind, ()) if "calls" not in edit]
        for way, calls in ways.items():
            if way != "gold" or any(edit.get("of", way) == way for edit in edits):
                yield Plan(f"{name}/{task}/{way}", told["suite"], task, calls)
        if "right" in one:
            yield from _by_detours(f"{name}/{task}", told["suite"], task, ways, told.get("detours", ()))
        for kind in ("right", "faults"):
            for number, edit in enumerate(one.get(kind, ())):
                yield _plan(f"{name}/{task}/{kind}/{number}", told["suite"], task, ways, edit)


def _by_detours(
    name: str, suite: str, task: str, ways: Mapping[str, Calls], detours: Sequence[Mapping[str, Calls]]
) -> Iterator[Plan]:
    for (way, calls), (number, detour) in product(ways.items(), enumerate(detours)):
        longer = {**detour.get("first", {}), **calls}
        longer = _inserted(longer, ANSWER, detour.get("last", {}), after=False)
        yield Plan(f"{name}/{way}/detours/{number}", suite, task, longer)


def _plan(name: str, suite: str, task: str, ways: Mapping[str, Calls], edit: Mapping[str, Any]) -> Plan:
    try:
        calls = dict(edit["calls"]) if "calls" in edit else _edited(dict(ways[edit.get("of", "gold")]), edit)
        plan = Plan(
            name,
            suite,
            task,
            calls,
            edit.get("together", ()),
            edit.get("mode"),
            None if edit.get("at") is None else str(edit["at"]),
            edit.get("limits", {}),
            None if edit.get("fails") is None else str(edit["fails"]),
            "calls" in edit,
            edit.get("says", {}),
        )
        named = {name for names in plan.together for name in names} | ({plan.at, plan.fails} - {END, None})
        named |= set(plan.says)
        if unknown := [one for one in named if str(one).split("#")[0] not in calls]:
            raise ValueError(f"there is no call {unknown}")
    except (KeyError, ValueError, StopIteration) as error:
        raise ValueError(f"{name}: {error!r}") from error
    return plan


def _gold(raw: Mapping[str, Any]) -> Calls:
    calls = list(raw["gold"])
    names = [str(number) if ANSWER not in call else f"{ANSWER}{number}" for number, call in enumerate(calls)]
    return dict(zip([*names[:-1], ANSWER], calls, strict=True))


def _edited(calls: Calls, edit: Mapping[str, Any]) -> Calls:
    for name, texts in edit.get("swap", {}).items():
        calls[str(name)] = _swapped(calls[str(name)], texts)
    for name, call in edit.get("put", {}).items():
        calls[_known(name, calls)] = call
    for side in ("before", "after"):
        for name, more in edit.get(side, {}).items():
            calls = _inserted(calls, _known(name, calls), more, after=side == "after")
    calls = {name: call for name, call in calls.items() if name not in list(map(str, edit.get("without", ())))}
    if "order" in edit:
        order = list(map(str, edit["order"]))
        calls = {name: calls[name] for name in [*order, *(one for one in calls if one not in order)]}
    if "answer" in edit:
        calls = {**calls, ANSWER: {ANSWER: edit["answer"]}}
    if "last" in edit:
        names = list(calls)
        calls = {name: calls[name] for name in names[: names.index(_known(edit["last"], calls)) + 1]}
    for name, times in edit.get("repeat", {}).items():
        call = calls[_known(name, calls)]
        calls = _inserted(
            calls, str(name), {f"{name}#{n}": _numbered(call, n) for n in range(2, times + 1)}, after=True
        )
    return calls


def _numbered(call: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(json.dumps(call).replace("@N", str(number)))
    return found


def _known(name: Any, calls: Calls) -> str:
    if str(name) not in calls:
        raise KeyError(str(name))
    return str(name)


def _inserted(calls: Calls, name: str, more: Calls, *, after: bool) -> Calls:
    found: Calls = {}
    for one, call in calls.items():
        near = {one: call}
        found |= ({**near, **more} if after else {**more, **near}) if one == name else near
    return found


def _swapped(call: Mapping[str, Any], texts: Sequence[str]) -> Mapping[str, Any]:
    ((tool, argument),) = call.items()
    key = (
        next((key for key in ("query", "code", "command", "text") if key in argument), "")
        if isinstance(argument, dict)
        else ""
    )
    text = argument[key] if key else argument
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        if old not in text:
            raise ValueError(f"'{old}' is not in the call")
        text = text.replace(old, new)
    return {tool: {**argument, key: text} if key else text}


def filled(answer: Any, told: Mapping[str, str]) -> Any:
    """Returns what is given to a call with what earlier calls gave in it."""
    match answer:
        case str():
            return _MARK.sub(lambda mark: str(filled({"of": mark[1], "find": mark[2]}, told)), answer)
        case {"of": name, "find": pattern}:
            found = re.search(pattern, told[str(name)], re.DOTALL)
            assert found is not None, f"{pattern} is not in {told[str(name)]}"
            return _plain(found[found.re.groups and 1])
        case {"of": name}:
            return _plain(told[str(name)].strip().splitlines()[-1].strip())
    return answer


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
