"""The suite's file format of a case (docs/agent.md), and its conversion to the data model."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json, Tool, ToolCall, Turn
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.core.values import value
from eval_pipeline.sandbox.world.tools import TOOLS, tool, why_wrong
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.capabilities import ActLimits
from eval_pipeline.tracks.options import checked_form
from eval_pipeline_plugins.tracks.agent.cases.servers import ServedTools
from eval_pipeline_plugins.tracks.agent.cases.settings import (
    KINDS,
    STRICT,
    AgentOptions,
    AnswerCheck,
    CaseLimits,
    Check,
    StateCheck,
    Text,
)
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, ASK

DONE = "done"
"""The answer of a gold where only what it does counts."""
ANSWERS: Mapping[str, Tool] = {
    ANSWER: tool(
        ANSWER,
        "Gives the answer and ends the task. Give only what was asked for: a number, a text, a list, or a list of "
        "objects for a table. If the task cannot be answered with what is there, say so and why.",
        {ANSWER: "(any) the answer"},
    ),
    ASK: tool(
        ASK, "Asks the user, who has set the task, a question and returns what the user says.", {"question": "it"}
    ),
}
_SHORT = {"python": "code", "shell": "command", "read_file": "path", "list_files": "path", "sql": "query"} | {
    ANSWER: ANSWER,
    ASK: "question",
}
"""Tools whose argument may stand alone in a case, and that argument."""


@value
class Fact:
    """Something that the user tells if a question has one of the words in it."""

    about: tuple[str, ...]
    say: str


@value
class AgentContext:
    """The setting of a case.

    Attributes:
        tools: names of the tools of its world, and of servers, that may be called.
        served: the tools of the suite's servers.
        guidelines: of the suite and of the case.
        facts: what the user knows; None if nobody can be asked.
        otherwise: what the user says to any other question.
        then: what the user says after each answer but the last.
    """

    world: WorldOfSuite
    served: ServedTools
    tools: tuple[str, ...]
    limits: ActLimits
    guidelines: str
    facts: tuple[Fact, ...] | None
    otherwise: str
    then: tuple[str, ...]

    def all_tools(self) -> dict[str, Tool]:
        """Returns all tools by name, `answer` last."""
        known = {**TOOLS, **self.served.tools}
        found = {name: known[name] for name in self.tools}
        return found | ({ASK: ANSWERS[ASK]} if self.facts is not None else {}) | {ANSWER: ANSWERS[ANSWER]}


@value
class AgentGold:
    """The definition of a right attempt.

    Attributes:
        script: a solution: calls of tools that end with `answer`.
        accepted: for each answer those that are right, the preferred one first.
        unanswerable: whether the right answer is that there is none.
        checks: what a right attempt has to pass.
        compare: the contract of answers and tables.
    """

    script: tuple[ToolCall, ...]
    accepted: tuple[tuple[Json, ...], ...]
    unanswerable: bool
    checks: tuple[Check, ...]
    compare: Contract
    difficulty: int = 0


AgentCase: TypeAlias = Case[AgentContext, AgentGold]
AgentTurn: TypeAlias = Turn[AgentGold]


def _listed(found: Any) -> Any:
    return [found] if isinstance(found, str) else found


class _FactFile(BaseModel):
    model_config = STRICT

    about: Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1)]
    say: Text


class _UserFile(BaseModel):
    model_config = STRICT

    facts: tuple[_FactFile, ...]
    otherwise: Text = "I do not know more than what I have said."


class AgentCaseFile(BaseModel):
    """One case: a task in a world.

    Attributes:
        gold: a solution, one call of a tool an item; it ends with `answer`.
        accept: further right answers, to the last message of the user.
        checks: default: `answer` and `state`, without `answer` where the gold's answer is `done`.
    """

    model_config = STRICT

    id: Text
    world: Text
    task: Text
    guidelines: str = ""
    tools: tuple[Text, ...] | None = None
    limits: CaseLimits = CaseLimits()
    user: _UserFile | None = None
    then: tuple[Text, ...] = ()
    gold: Annotated[list[Any], Field(min_length=1)]
    accept: list[Json] = Field(default_factory=list)
    unanswerable: bool = False
    checks: list[Any] = Field(default_factory=list)
    difficulty: Annotated[int, Field(ge=0, le=20)] = 0
    tags: list[Text] = Field(default_factory=list)
    cluster: Text | None = None


_Place = tuple[int | str, ...]
_Problems = list[tuple[_Place, str]]


def read_case(
    raw: Mapping[str, Json],
    suite: str,
    file: str,
    line: int,
    worlds: Mapping[str, WorldOfSuite],
    options: AgentOptions,
    served: ServedTools,
) -> AgentCase:
    """Reads a case of a suite with these worlds, options and tools of servers.

    Raises:
        CaseError: names each field that is wrong.
    """
    form = checked_form(AgentCaseFile, raw)
    problems: _Problems = []
    if form.world not in worlds:
        told = f"there is no world '{form.world}'; expected one of {', '.join(worlds)}"
        raise CaseError([(("world",), told)])
    tools = served.chosen(options.tools if form.tools is None else form.tools)
    if isinstance(tools, str):
        raise CaseError([(("tools",), tools)])
    user = form.user
    context = AgentContext(
        worlds[form.world],
        served,
        tools,
        form.limits.over(options.limits.over(ActLimits())),
        "\n\n".join(filter(None, (options.guidelines.strip(), form.guidelines.strip()))),
        None if user is None else tuple(Fact(one.about, one.say) for one in user.facts),
        "" if user is None else user.otherwise,
        form.then,
    )
    script = _script(form.gold, context.all_tools(), problems)
    answers = [call.arguments.get(ANSWER) for call in script if call.name == ANSWER]
    if not problems:
        _check_answers(script, answers, len(form.then) + 1, problems)
    checks = _checks(form, answers, context.world, problems)
    if problems:
        raise CaseError(problems)
    accepted = [(answer,) for answer in answers]
    accepted[-1] = (*accepted[-1], *form.accept)
    gold = AgentGold(script, tuple(accepted), form.unanswerable, checks, options.compare, form.difficulty)
    features = {"asks_user": user is not None, "is_unanswerable": form.unanswerable, "has_effects": answers[-1] == DONE}
    turn = Turn(turn_id(suite, form.id, 0), 0, form.task, gold)
    return Case(form.id, form.cluster or form.id, tuple(form.tags), features, context, (turn,), file, line)


def _script(items: Sequence[Any], tools: Mapping[str, Tool], problems: _Problems) -> tuple[ToolCall, ...]:
    calls = []
    for number, item in enumerate(items):
        place = ("gold", number)
        if not isinstance(item, Mapping) or len(item) != 1:
            problems.append((place, f"expected a call such as `- sql: {{query: …}}`, found {told_value(item)}"))
            continue
        ((name, given),) = item.items()
        if name == ANSWER or not isinstance(given, Mapping):
            given = {} if given is None and name not in (ANSWER, *_SHORT) else {_SHORT.get(name, ANSWER): given}
        if (wrong := why_wrong(name, given, tools)) is not None:
            problems.append((place, wrong))
        else:
            calls.append(ToolCall("", name, given))
    return tuple(calls)


def _check_answers(script: Sequence[ToolCall], answers: Sequence[Json], wanted: int, problems: _Problems) -> None:
    if script[-1].name != ANSWER:
        problems.append((("gold",), "expected a last call `- answer: …`"))
    elif len(answers) != wanted:
        told = f"expected {wanted} calls of `answer`, one for `task` and for each item of `then`, found {len(answers)}"
        problems.append((("gold",), told))
    elif any(answer is None or answer == "" for answer in answers):
        problems.append((("gold",), f"expected an answer, found nothing; write `- answer: {DONE}` where none counts"))


def _checks(
    form: AgentCaseFile, answers: Sequence[Json], world: WorldOfSuite, problems: _Problems
) -> tuple[Check, ...]:
    if not form.checks:
        return (*([AnswerCheck()] if answers and answers[-1] != DONE else []), StateCheck())
    found: list[Check] = []
    for number, item in enumerate(form.checks):
        place = ("checks", number)
        name, given = next(iter(item.items())) if isinstance(item, Mapping) and len(item) == 1 else (item, None)
        if not isinstance(name, str) or name not in KINDS or not isinstance(given, Mapping | None):
            problems.append((place, f"expected one of {', '.join(KINDS)}, found {told_value(item)}"))
            continue
        try:
            check = checked_form(KINDS[name], given or {})
        except CaseError as error:
            problems += [((*place, name, *inner), message) for inner, message in error.problems]
            continue
        database = getattr(check, "database", None)
        if database is not None and database not in world.databases:
            known = ", ".join(world.databases) or "none"
            problems.append(((*place, name, "database"), f"the world has no database '{database}'; it has: {known}"))
        found.append(check)
    return tuple(found)
