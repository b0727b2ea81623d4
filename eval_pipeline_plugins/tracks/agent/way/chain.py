"""The calls of an attempt with what each reads, writes and computes, and which of them led to a result."""

import ast
import builtins
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentContext
from eval_pipeline_plugins.tracks.agent.checking.writes import normal_path
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, ASK, ActStep, Trajectory
from eval_pipeline_plugins.tracks.agent.way.code import CallCode, in_our_words, ran_by
from eval_pipeline_plugins.tracks.agent.way.decisive import decisive
from eval_pipeline_plugins.tracks.agent.way.facts.commands import of_command
from eval_pipeline_plugins.tracks.agent.way.facts.programs import of_program
from eval_pipeline_plugins.tracks.agent.way.facts.statements import of_statement
from eval_pipeline_plugins.tracks.agent.way.facts.told import CodeFact, Facts, parts_of
from eval_pipeline_plugins.tracks.agent.way.reads import Touched, touched_by
from eval_pipeline_plugins.tracks.agent.way.values import figure, numbers_of

_LOOKS = frozenset({"list_files", "read_file", ASK, ANSWER})
_FEW, _LARGE, _LONGEST, _MOST_ROWS = 12, 1000, 20_000, 40
_COMMON = frozenset({*map(float, range(13)), 100.0, 1000.0})
_BUILT_IN = frozenset(dir(builtins))
_WORD, _SHORT = re.compile(r"\w+"), 200
_KEY = re.compile(r"(?<![\w-])[a-z]{1,4}-?\d+(?![\w-])")
_TOKEN = re.compile(r"\d+\.\d+|\w+")
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
"""Numbers that are in code of their own, and not because a result had them."""


@value
class WayStep:
    """A call of a tool.

    Attributes:
        place: in the attempt's steps, from 0.
        step: the call with its result, in the words of our tools.
        touched: what it reads and writes.
        facts: what it computes.
        makes, uses: variables of the session in Python.
        numbers: in its code.
        is_shared: whether the other side has a call that does the same.
        deciding: the same with only what decides the result; None where that is all.
    """

    place: int
    step: ActStep
    touched: Touched
    facts: Facts
    makes: frozenset[str]
    uses: frozenset[str]
    numbers: tuple[float, ...] = ()
    is_shared: bool = False
    deciding: "WayStep | None" = None

    @property
    def name(self) -> str:
        """The tool."""
        return self.step.calls[0].name

    @property
    def text(self) -> str:
        """What it gave; nothing if it failed."""
        return "" if self.step.error_class is not None else self.step.text

    @property
    def answer(self) -> Json:
        """What was answered by it."""
        return self.step.calls[0].arguments.get(ANSWER)

    def computes(self) -> bool:
        """Returns whether more is done than that something is looked at as it is."""
        kinds = {one.kind for one in self.facts}
        return self.name not in _LOOKS and bool(
            kinds & {"aggregate", "where", "number", "factor", "operator", "distinct"} or kinds >= {"limit", "sort"}
        )

    def is_by_hand(self) -> bool:
        """Returns whether it computes from numbers in its code alone."""
        return self.computes() and not self.touched.reads and not self.uses - self.makes - _BUILT_IN

    @property
    def code(self) -> str:
        """Its arguments without blanks, in small letters."""
        return "".join(str(sorted(self.step.calls[0].arguments.items(), key=repr)).casefold().split())

    def agrees(self, other: "WayStep") -> bool:
        """Returns whether it does what another call does: by its code, or by what it gave where that is all it does."""
        if self.name == other.name and self.code == other.code:
            return True
        numbers = numbers_of(self.text)
        is_telling = any(figure(one).is_distinct() or abs(one) >= _LARGE for one in numbers)
        return is_telling and not self.makes and self.computes() and set(numbers) <= set(numbers_of(other.text))

    def words(self) -> frozenset[str]:
        """Returns the words of its code in small letters."""
        return frozenset(
            re.findall(r"\w+", " ".join(str(one) for one in self.step.calls[0].arguments.values()).lower())
        )

    def is_small(self) -> bool:
        """Returns whether it gave so few numbers that one of them is hardly there by chance."""
        return len(numbers_of(self.text)) <= _FEW


def way_of(trajectory: Trajectory, context: AgentContext) -> list[WayStep]:
    """Returns the calls of tools in order."""
    found, written = list[WayStep](), dict[str, str]()
    for place, step in enumerate(trajectory.steps):
        if step.kind == "tool":
            found.append(_way_step(place, in_our_words(step), found, written, context))
    return found


def _way_step(
    place: int, step: ActStep, before: Sequence[WayStep], written: dict[str, str], context: AgentContext
) -> WayStep:
    call = step.calls[0]
    ran = ran_by(call, context.world, written)
    if call.name == "write_file":
        written[normal_path(str(call.arguments.get("path", "")))] = str(call.arguments.get("text", ""))
    makes, uses = _variables(ran.programs) if call.name == "python" else (frozenset[str](), frozenset[str]())
    code = " ".join(str(one) for one in call.arguments.values()) if call.name != ANSWER else ""
    touched, facts = touched_by(step, ran, context), facts_of(ran)
    copied = dict(_copied(before, code, context)) if step.error_class is None else {}
    listed = frozenset[str]().union(*copied.values())
    facts = Facts({one: count for one, count in facts.items() if not (one.kind == "where" and _is_of(one, listed))})
    touched = replace(touched, reads=touched.reads | copied.keys())
    return WayStep(place, step, touched, facts, makes, uses, tuple(numbers_in(code)))


def _is_of(condition: CodeFact, listed: frozenset[str]) -> bool:
    """Returns whether a condition has only words of a list that is typed."""
    words = set(_WORD.findall(parts_of(condition.what)[2].lower()))
    return bool(words) and words <= listed


def _copied(before: Sequence[WayStep], code: str, context: AgentContext) -> Iterator[tuple[str, frozenset[str]]]:
    """Yields files of a few words that were looked at, with these, where all that were shown are in the code."""
    here = frozenset(_WORD.findall(code.lower()))
    for one in before:
        if len(one.text) >= _SHORT or len(one.touched.reads) != 1 or "\n" not in one.text.strip() or one.computes():
            continue
        words = frozenset(_WORD.findall(one.text.lower()))
        if words and words <= here:
            yield from ((path, words) for path in one.touched.reads)
    for path in {path for one in before for path in one.touched.reads} & context.world.listing():
        file = context.world.folder() / path
        if file.stat().st_size < _SHORT:
            words = frozenset(_WORD.findall(file.read_text("utf-8", "replace").lower()))
            if words and words <= here:
                yield path, words


def decided_way(trajectory: Trajectory, context: AgentContext) -> list[WayStep]:
    """Returns the calls of tools in order, with what decides in them."""
    steps = tuple(in_our_words(one) if one.kind == "tool" else one for one in trajectory.steps)
    ours, found = replace(trajectory, steps=steps), list[WayStep]()
    kept = decisive(ours).steps
    for one in way_of(ours, context):
        less = kept[one.place]
        same = less.calls[0].arguments == one.step.calls[0].arguments
        found.append(one if same else replace(one, deciding=_way_step(one.place, less, found, {}, context)))
    return found


def sharing(mine: Sequence[WayStep], gold: Sequence[WayStep]) -> tuple[list[WayStep], list[WayStep]]:
    """Returns both with what does the same in both marked."""
    theirs = [replace(one, is_shared=any(other.agrees(one) for other in mine)) for one in gold]
    return [replace(one, is_shared=any(one.agrees(other) for other in gold)) for one in mine], theirs


def core_of(steps: Sequence[WayStep], ends: Sequence[WayStep]) -> list[WayStep]:
    """Returns what in the gold's calls cannot be left out, as far as some of them need it."""
    found = {one.place: one.deciding or one for end in ends for one in leading_to(steps, end, by_numbers=False)}
    return [found[place] for place in sorted(found)]


def numbers_in(code: str) -> Iterator[float]:
    """Yields the numbers of code, also those in texts such as `C-0046`."""
    return (float(one) for one in re.findall(r"\d+(?:\.\d+)?", code[:_LONGEST]))


def keys_in(text: str) -> frozenset[str]:
    """Returns the keys in a text, such as `C-0046` or `N4`."""
    return frozenset(_KEY.findall(text[:_LONGEST]))


def facts_of(ran: CallCode) -> Facts:
    """Returns what a call computes."""
    told = [*map(of_statement, ran.statements), *map(of_program, ran.programs), *map(of_command, ran.commands)]
    return Facts(CodeFact(*one) for each in told for one in each)


def _variables(programs: Sequence[ast.Module]) -> tuple[frozenset[str], frozenset[str]]:
    makes, uses = set[str](), set[str]()
    for node in (one for program in programs for one in ast.walk(program)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                makes.add(name)
            case ast.Name(id=name):
                uses.add(name)
        match node:  # what changes in place
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                makes.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "update" | "add")):
                makes.add(name)
    return frozenset(makes), frozenset(uses)


def leading_to(steps: Sequence[WayStep], last: WayStep, *, by_numbers: bool = True) -> list[WayStep]:
    """Returns the calls whose results or variables a call needs, in order, it last.

    They made variables, tables or files that it uses, or computed numbers that are in its code. Without `by_numbers`
    the latter count only for a call that reads nothing.
    """
    chosen, left = {last.place: last}, [last]
    before = [one for one in steps if one.step.error_class is None]
    while left:
        of = left.pop()
        for one in _needed_by(of, [earlier for earlier in before if earlier.place < of.place], by_numbers):
            if one.place not in chosen:
                chosen[one.place] = one
                left.append(one)
    return [chosen[place] for place in sorted(chosen)]


def _needed_by(of: WayStep, before: Sequence[WayStep], by_numbers: bool) -> Iterator[WayStep]:
    for one in before:
        makes = one.makes & of.uses if of.name == "python" and one.name == "python" else frozenset()
        if makes or (one.touched.writes & of.touched.reads):
            yield one
    is_alone = not of.touched.reads and not of.uses - of.makes - _BUILT_IN
    for number in filter(is_own, of.numbers if by_numbers or is_alone else ()):
        is_typed = is_alone and figure(number).is_distinct()  # what was read is written into the code
        may_give = [one for one in before if is_typed or (one.computes() and one.is_small())]
        yield from [one for one in may_give if {number, -number} & set(numbers_of(one.text))][-1:]
    for one in before if is_alone else ():  # also a small number, where it is all that a call gave
        if one.computes() and len(given := numbers_of(one.text)) == 1 and given[0] in of.numbers:
            yield one
    yield from [one for one in before if one.name == "sql" and not one.computes() and _names_keys(of, one.text)][-1:]
    code = _tokens(" ".join(str(one) for one in of.step.calls[0].arguments.values()))
    yield from [one for one in before if one.computes() and _is_copied(one.text, code)]
    if keys := keys_in(of.code) if by_numbers or is_alone else ():
        shown = [(one, keys_in(one.text.casefold())) for one in before if one.computes() and one.is_small()]
        for key in keys:
            yield from [one for one, known in shown if key in known][-1:]


def _names_keys(step: WayStep, text: str) -> bool:
    """Returns whether conditions name several keys of a column that a result has with these."""
    header, _, rows = text.partition("\n")
    keys = [one.what.split(" = ") for one in step.facts if one.kind == "where" and " = " in one.what]
    shown = set(_WORD.findall(rows.casefold()))
    for column in set(_WORD.findall(header.casefold())) & {one[0] for one in keys}:
        named = {one[1].casefold() for one in keys if one[0] == column}
        if len(named) > 1 and named <= shown:
            return True
    return False


@lru_cache(maxsize=512)
def _rows_of(text: str) -> tuple[str, ...]:
    """Returns the first rows of a result that have several words, as these."""
    lines = text[:_LONGEST].splitlines()[:_MOST_ROWS]
    return tuple(row for line in lines if len((row := _tokens(line)).split()) > 1)


def _tokens(text: str) -> str:
    return f" {' '.join(_TOKEN.findall(text[:_LONGEST].casefold()))} "


def _is_copied(text: str, code: str) -> bool:
    """Returns whether most rows of a result are written in code, and several or a long one."""
    rows = _rows_of(text)
    return (len(rows) > 1 or len(" ".join(rows).split()) > _FEW) and sum(row in code for row in rows) * 2 > len(rows)


def is_own(number: float) -> bool:
    """Returns whether a number is none that code has of itself, such as 0, 100 or a year."""
    return number not in _COMMON and not _FIRST_YEAR < number < _LAST_YEAR


def facts_in(steps: Collection[WayStep]) -> Facts:
    """Returns what calls compute together."""
    found: Facts = Facts()
    for one in steps:
        found.update(one.facts)
    return found


def until_answer(steps: Sequence[WayStep], number: int) -> list[WayStep]:
    """Returns the calls up to the answer of this number, from 0, or all if there is none."""
    answers = [at for at, one in enumerate(steps) if one.name == ANSWER and one.step.error_class is None]
    return list(steps[: answers[number] + 1]) if number < len(answers) else list(steps)


@value
class Departure:
    """A difference from the gold.

    Attributes:
        mode: `wrong_table`, `wrong_filter_or_join` or `wrong_arithmetic`; None where it tells none.
        step: the call that makes it.
        words: what the gold does there, and what was done.
        facts: what is missing or there beside.
        weight: how much it tells.
    """

    mode: str | None
    step: WayStep
    words: str
    facts: tuple[CodeFact, ...] = ()
    weight: float = 0.0
