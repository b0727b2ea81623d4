"""Shows that a gold is right by its own checks, and writes it otherwise."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Json, Ran, Response, ToolCall
from eval_pipeline.table_comparison.contracts import insisted_by
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.tracks.agent.cases.case_file import AgentCase, AgentTurn
from eval_pipeline.tracks.agent.cases.settings import AnswerCheck
from eval_pipeline.tracks.agent.checking.evidence import FAILED, evidence_of
from eval_pipeline.tracks.agent.damage import script_text, with_answer
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
    found = {
        kind: script_text([*gold.script[:-1], ToolCall("", ANSWER, {ANSWER: answer})])
        for kind, answer in answers.items()
    }
    return found | _with_files(turn, _written_files)


def _with_files(turn: AgentTurn, change: Callable[[list[list[str]], str], Mapping[str, str]]) -> dict[str, str]:
    """Returns scripts that write each CSV file of the gold otherwise."""
    found = {}
    for place, call in enumerate(turn.gold.script):
        path, text = str(call.arguments.get("path", "")), call.arguments.get("text")
        if call.name == "write_file" and path.endswith(".csv") and isinstance(text, str):
            rows = [row for row in csv.reader(io.StringIO(text)) if row]
            for kind, other in change(rows, turn.question).items():
                written = ToolCall("", call.name, {**call.arguments, "text": other})
                script = [*turn.gold.script[:place], written, *turn.gold.script[place + 1 :]]
                found[f"{path} {kind}"] = script_text(script)
    return found


def _printed(rows: Sequence[Sequence[str]], separator: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def _written_files(rows: list[list[str]], question: str) -> dict[str, str]:
    head, *body = rows
    found = {"with semicolons": _printed(rows, ";")}
    if len(head) > 1:
        found["with columns in another order"] = _printed([row[::-1] for row in rows])
    if len(body) > 1 and Relaxation.ROW_ORDER not in insisted_by(question):
        found["with rows in another order"] = _printed([head, *body[::-1]])
    return found


def _wrong_files(rows: list[list[str]], question: str) -> dict[str, str]:
    head, *body = rows
    if not any(cell for row in body for cell in row):
        return {}
    found = {"with a header only": _printed([head]), "with a row too many": _printed([*rows, ["7"] * len(head)])}
    if len(body) > 1:
        found["with half of its rows"] = _printed([head, *body[: len(body) // 2]])
    return found


def cheats(case: AgentCase, turn: AgentTurn) -> Mapping[str, str]:
    """Returns all labels; if the gold changes something, the right answer alone and wrong files too."""
    labels = [one.labels for one in turn.gold.checks if isinstance(one, AnswerCheck) and one.labels]
    told = {"all options at once": script_text(with_answer(turn, ", ".join(labels[0])))} if labels else {}
    found = gold_run(case)
    if isinstance(found, str) or not found.end_state:
        return told
    alone = {"the answer without the work": script_text([turn.gold.script[-1]])}
    return told | alone | _with_files(turn, _wrong_files)


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
