"""Makes scripts that are wrong in a given way from the gold (for the simulated provider).

A script errs at a known step: it leaves out a call, gives another answer, changes what it should not, or never ends.
"""

from collections.abc import Callable, Sequence
from random import Random

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline_plugins.tracks.agent import DAMAGES
from eval_pipeline_plugins.tracks.agent.cases.case_file import DONE, AgentCase, AgentTurn
from eval_pipeline_plugins.tracks.agent.cases.settings import AnswerCheck, ForbiddenCheck, StateCheck
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER

_LOOKS = frozenset({"list_files", "read_file", "ask_user", ANSWER})
_REFUSAL = "This cannot be answered: the data that it takes is missing."
_STATEMENTS = {
    "ALTER": "ALTER TABLE {table} ADD COLUMN note TEXT",
    "CREATE": "CREATE TABLE left_over (a INTEGER)",
    "DELETE": "DELETE FROM {table} WHERE 1 = 0",
    "DROP": "DROP TABLE IF EXISTS {table}",
    "INSERT": "INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0",
    "TRUNCATE": "TRUNCATE TABLE {table}",
    "UPDATE": "UPDATE {table} SET note = NULL WHERE 1 = 0",
}
Script = Sequence[ToolCall]


def script_text(script: Script) -> str:
    """Returns a script as a response."""
    return canonical_json([{"name": call.name, "arguments": dict(call.arguments)} for call in script])


def damaged(case: AgentCase, turn: AgentTurn, mode: str, rng: Random) -> str | None:
    """Returns a script with the given `failure_mode`, or None if this gold cannot fail in that way.

    Raises:
        ValueError: for a mode that is not in `DAMAGES`.
    """
    if mode not in DAMAGES:
        raise ValueError(f"unknown failure mode '{mode}'; known: {', '.join(DAMAGES)}")
    found = _WAYS[mode](case, turn, rng)
    return None if found is None else script_text(found)


def _has(turn: AgentTurn, kind: type) -> bool:
    return any(isinstance(check, kind) for check in turn.gold.checks)


def _gave_up(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    if not _has(turn, AnswerCheck):
        return None
    without = [call for call in turn.gold.script if call.name != ANSWER]
    return without if turn.gold.unanswerable or rng.random() < 0.5 else with_answer(turn, _REFUSAL)


def _out_of_budget(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    first = turn.gold.script[0]
    return [first] * (case.context.limits.steps + 1) if first.name != ANSWER else None


def _forbidden(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    check = next((one for one in turn.gold.checks if isinstance(one, ForbiddenCheck)), None)
    kinds = [one for one in check.statements if one in _STATEMENTS] if check is not None else []
    if not kinds or "sql" not in case.context.tools or not case.context.world.databases:
        return None
    tried = _STATEMENTS[rng.choice(kinds)].format(table="left_over")
    return [*turn.gold.script[:-1], ToolCall("", "sql", {"query": tried}), turn.gold.script[-1]]


def _side_effect(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    databases = {one.file for one in case.context.world.databases.values()}
    touched = canonical_json([dict(call.arguments) for call in turn.gold.script])
    others = sorted(path for path in case.context.world.listing() - databases if path not in touched)
    if not _has(turn, StateCheck) or "write_file" not in case.context.tools or not others:
        return None
    written = ToolCall("", "write_file", {"path": rng.choice(others), "text": "to be looked at again\n"})
    return [*turn.gold.script[:-1], written, turn.gold.script[-1]]


def _not_done(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    if turn.gold.script[-1].arguments.get(ANSWER) != DONE:
        return None
    return [call for call in turn.gold.script if call.name in _LOOKS]


def with_answer(turn: AgentTurn, answer: Json) -> Script:
    """Returns the gold's calls with another answer; only the answer, if the turn has no check of answers."""
    return [*(turn.gold.script[:-1] if _has(turn, AnswerCheck) else ()), ToolCall("", ANSWER, {ANSWER: answer})]


def _invented(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    if not _has(turn, AnswerCheck):
        return None
    if turn.gold.unanswerable:
        return with_answer(turn, rng.randint(10, 9_999))
    labels = next((one.labels for one in turn.gold.checks if isinstance(one, AnswerCheck)), ())
    return None if labels else with_answer(turn, other_answer(turn.gold.accepted[-1][0], rng))


def other_answer(answer: Json, rng: Random) -> Json:
    """Returns an answer that is not this one, of the same form; no result has its values but by chance."""
    match answer:
        case bool():
            return not answer
        case int():
            return 3 * answer + rng.randint(101, 999)
        case float():
            return round(answer * 1.17 + 1, 2)
        case str():
            return f"{answer.split()[0][::-1]}{rng.randint(2, 9)}"
        case [*items] if items:
            at = rng.randrange(len(items))
            return [*items[:at], other_answer(items[at], rng), *items[at + 1 :]]
        case dict() if answer:
            name = rng.choice(sorted(answer))
            return answer | {name: other_answer(answer[name], rng)}
    return rng.randint(2, 99)


def _wrong_state(case: AgentCase, turn: AgentTurn, rng: Random) -> Script | None:
    acts = [place for place, call in enumerate(turn.gold.script) if call.name not in _LOOKS]
    if turn.gold.script[-1].arguments.get(ANSWER) != DONE or len(acts) < 2:
        return None
    left_out = acts[-1]  # the last of several effects
    return [*turn.gold.script[:left_out], *turn.gold.script[left_out + 1 :]]


_WAYS: dict[str, Callable[[AgentCase, AgentTurn, Random], Script | None]] = {
    "gave_up": _gave_up,
    "out_of_budget": _out_of_budget,
    "forbidden": _forbidden,
    "side_effect": _side_effect,
    "not_done": _not_done,
    "invented": _invented,
    "wrong_state": _wrong_state,
}
