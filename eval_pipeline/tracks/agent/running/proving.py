"""Shows that a gold is right by its own checks, and writes it otherwise."""

from collections.abc import Mapping

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Json, Ran, Response, ToolCall
from eval_pipeline.table_comparison.contracts import insisted_by
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.tracks.agent.cases.case_file import AgentCase, AgentTurn
from eval_pipeline.tracks.agent.checking.evidence import FAILED, evidence_of
from eval_pipeline.tracks.agent.damage import script_text
from eval_pipeline.tracks.agent.running.gold import gold_run
from eval_pipeline.tracks.agent.running.solving import result_of
from eval_pipeline.tracks.agent.trajectory import ANSWER, Trajectory


def gold_problem(case: AgentCase) -> str | None:
    """Returns why the gold of a case cannot be right: a call fails, or a check is not passed."""
    found = gold_run(case)
    if isinstance(found, str):
        return found
    for number, step in enumerate(found.tool_steps()):
        if step.error_class is not None:
            return f"call {number} of the gold ({step.calls[0].name}) fails: {' '.join(step.text.split())[:300]}"
    if found.ended != "answered":
        return f"the gold does not end with an answer: {found.why}"
    turn = case.turns[0]
    for one in evidence_of(case, turn, _attempt(turn, found)):
        if one.verdict == FAILED:
            return f"the gold does not pass its check {one.details['check'] + 1} ({one.kind}): {one.details['words']}"
    return None


def _attempt(turn: AgentTurn, found: Trajectory) -> Attempt[Trajectory]:
    return Attempt(turn.id, 0, 0, "", Response(""), None, found, Ran(result_of(found)))


def rewritten(turn: AgentTurn) -> Mapping[str, str]:
    """Returns right scripts, each with how its answer is written."""
    gold = turn.gold
    answers: dict[str, Json] = {f"accepted answer {n}": one for n, one in enumerate(gold.accepted[-1][1:], 2)}
    answers |= {} if gold.unanswerable else _written(gold.accepted[-1][0], turn.question)
    return {
        kind: script_text([*gold.script[:-1], ToolCall("", ANSWER, {ANSWER: answer})])
        for kind, answer in answers.items()
    }


def cheats(case: AgentCase, turn: AgentTurn) -> Mapping[str, str]:
    """Returns the right answer alone, if the gold changes something before it."""
    found = gold_run(case)
    if isinstance(found, str) or not found.end_state:
        return {}
    return {"the answer without the work": script_text([turn.gold.script[-1]])}


def _written(answer: Json, question: str) -> dict[str, Json]:
    if isinstance(answer, bool):
        return {"as a word": "yes" if answer else "no"}
    if isinstance(answer, int | float):
        printed = f"{answer:,}"
        return {"as text": str(answer), "with separators": printed, "in a sentence": f"The answer is {printed}."}
    if isinstance(answer, str):
        return {"in bold": f"**{answer}**", "in an object": {"result": answer}}
    if isinstance(answer, list) and answer and all(isinstance(one, dict) for one in answer):
        return _tables(answer, question)
    if isinstance(answer, list) and len(answer) > 1:
        other = {} if Relaxation.ROW_ORDER in insisted_by(question) else {"in another order": answer[::-1]}
        lines = "\n".join(f"- {one}" for one in answer)
        return {"as lines": lines, "as JSON in text": json_text(answer), **other}
    return {"as JSON in text": json_text(answer)}


def _tables(items: list[dict[str, Json]], question: str) -> dict[str, Json]:
    names = list(items[0])
    rows = [[one.get(name) for name in names] for one in items]
    lines: list[list[Json]] = [list(names), ["---"] * len(names), *rows]
    markdown = "\n".join(f"| {' | '.join('' if cell is None else str(cell) for cell in line)} |" for line in lines)
    found: dict[str, Json] = {
        "as a table of Markdown": markdown,
        "as columns and rows": {"columns": names, "rows": rows},
        "under other names": [{f"{name}_": cell for name, cell in one.items()} for one in items],
    }
    if Relaxation.ROW_ORDER not in insisted_by(question):
        found["in another order"] = items[::-1]
    return found
