"""Shows that a gold is right by its own checks, and writes it otherwise."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Json, Ran, Response, ToolCall
from eval_pipeline.core.numbers import number_text
from eval_pipeline.table_comparison.contracts import MINDS_THE_QUESTION, Contract
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline.tracks.capabilities import Contradiction
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase, AgentTurn
from eval_pipeline_plugins.tracks.agent.cases.settings import AnswerCheck
from eval_pipeline_plugins.tracks.agent.checking.evidence import FAILED, evidence_of
from eval_pipeline_plugins.tracks.agent.damage import script_text, with_answer
from eval_pipeline_plugins.tracks.agent.running.gold import gold_run
from eval_pipeline_plugins.tracks.agent.running.solving import result_of
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, ASK, Trajectory
from eval_pipeline_plugins.tracks.agent.way.chain import until_answer, way_of
from eval_pipeline_plugins.tracks.agent.way.values import FACTORS, Leaf, follows, holds, leaves, numbers_of

_OTHER_VALUE, _MOST_WORDS, _MOST_SHOWN = 0.6, 4, 200


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


def contradictions(case: AgentCase) -> list[Contradiction]:
    """Returns a doubt for an answer of the gold that has values which no call before it gives."""
    turn, found, context = case.turns[0], gold_run(case), case.context
    checks = [one for one in turn.gold.checks if isinstance(one, AnswerCheck)]
    if isinstance(found, str) or not checks:
        return []
    try:
        steps, last = way_of(found, context), len(turn.gold.accepted) - 1
    except (ArithmeticError, RecursionError, ValueError):  # code is as deep, and figures as large, as people like
        return []
    for number, question in enumerate([turn.question, *context.then]):
        is_own = number == last and (turn.gold.unanswerable or any(one.labels for one in checks))
        before = [one for one in until_answer(steps, number) if one.name == ASK or one.computes()]
        computing = [one for one in before if one.computes()]
        if is_own or not computing or not computing[-1].text or any(one.step.cut for one in before):
            continue  # it is concluded, or nobody knows what it is from
        texts = [one.text for one in before]
        accepted = map(leaves, turn.gold.accepted[number])
        missing = [[leaf for leaf in one if not _is_given(leaf, texts, question)] for one in accepted]
        if all(missing):
            told = ", ".join(one if isinstance(one, str) else number_text(one.number) for one in missing[0][:3])
            gives = " ".join(computing[-1].text.split())[:_MOST_SHOWN]
            why = f"none of its own calls gives its answer {told}; the last one that computes gives {gives}"
            return [Contradiction(turn.id, why, _OTHER_VALUE)]
    return []


def _is_given(leaf: Leaf, texts: Sequence[str], question: str) -> bool:
    """Returns whether results give a value of an answer, or one that it follows from; it may be in other words."""
    if isinstance(leaf, str):
        is_worded = len(leaf.split()) > _MOST_WORDS or (" " in leaf and any(map(str.isdigit, leaf)))
        return is_worded or leaf in ("yes", "no") or any(holds(text, leaf) for text in (*texts, question))
    units = {1.0, *FACTORS, *(1 / one for one in FACTORS)}
    numbers = [number * unit for text in texts for number in numbers_of(text) for unit in units]
    is_written = any(holds(text, number_text(leaf.number)) for text in texts)  # such as the year of a day
    is_made = any(follows(leaf, numbers_of(text)) for text in texts)
    return is_written or is_made or leaf.is_in(numbers)


def _attempt(turn: AgentTurn, found: Trajectory) -> Attempt[Trajectory]:
    return Attempt(turn.id, 0, 0, "", Response(""), None, found, Ran(result_of(found)))


def rewritten(case: AgentCase, turn: AgentTurn) -> Mapping[str, str]:
    """Returns right scripts, each with how its answer is written."""
    gold, question = turn.gold, _last_question(case, turn)
    answers: dict[str, Json] = {f"accepted answer {n}": one for n, one in enumerate(gold.accepted[-1][1:], 2)}
    if not gold.unanswerable:
        right = gold.accepted[-1][0]
        answers |= _written(right) | ({} if _asks_for_order(turn, question) else _turned(gold.accepted[-1]))
    found = {kind: script_text([*gold.script[:-1], _answer(answer)]) for kind, answer in answers.items()}
    return found | _with_files(turn, _written_files)


def _answer(answer: Json) -> ToolCall:
    return ToolCall("", ANSWER, {ANSWER: answer})


def _last_question(case: AgentCase, turn: AgentTurn) -> str:
    return [turn.question, *case.context.then][-1]


_MAY_ASK_FOR_ORDER = re.compile(
    r"\bfirst\b(?! (name|day|date|quarter|half|week|month|year|time|line|row|column|letter|word)s?\b)"
    r"|\b(rank(s|ed|ing)?|in order|start(s|ing)? with|begin(s|ning)? with|(at|on) (the )?top)\b",
    re.IGNORECASE,
)
"""Words that may ask for an order; whether they do only the case can say."""


def _asks_for_order(turn: AgentTurn, question: str) -> bool:
    """Returns whether the order of a list or of rows counts, or should: the question may ask for it."""
    own = next((one.compare for one in turn.gold.checks if isinstance(one, AnswerCheck)), None)
    contract = turn.gold.compare.with_case(own)
    if Relaxation.ROW_ORDER in contract.overlook:
        return False
    asked = Relaxation.ROW_ORDER in contract.insisted(question) or _MAY_ASK_FOR_ORDER.search(question) is not None
    return asked and (contract.preset in MINDS_THE_QUESTION or Relaxation.ROW_ORDER in contract.insist)


def _turned(accepted: Sequence[Json]) -> dict[str, Json]:
    """Returns the first of the right answers in another order, unless that is right as well."""
    other = accepted[0][::-1] if isinstance(accepted[0], list) else accepted[0]
    return {} if other in accepted else {"in another order": other}


_Change = Callable[[list[list[str]], Contract, str], Mapping[str, str]]


def _with_files(turn: AgentTurn, change: _Change) -> dict[str, str]:
    """Returns scripts that write each CSV file of the gold otherwise."""
    found = {}
    for place, call in enumerate(turn.gold.script):
        path, text = str(call.arguments.get("path", "")), call.arguments.get("text")
        if call.name == "write_file" and path.endswith(".csv") and isinstance(text, str):
            rows = [row for row in csv.reader(io.StringIO(text)) if row]
            for kind, other in change(rows, turn.gold.compare, turn.question).items():
                written = ToolCall("", call.name, {**call.arguments, "text": other})
                script = [*turn.gold.script[:place], written, *turn.gold.script[place + 1 :]]
                found[f"{path} {kind}"] = script_text(script)
    return found


def _printed(rows: Sequence[Sequence[str]], separator: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def _written_files(rows: list[list[str]], contract: Contract, question: str) -> dict[str, str]:
    head, *body = rows
    found = {"with semicolons": _printed(rows, ";")}
    if len(head) > 1:
        found["with columns in another order"] = _printed([row[::-1] for row in rows])
    if len(body) > 1 and Relaxation.ROW_ORDER not in contract.insisted(question):
        found["with rows in another order"] = _printed([head, *body[::-1]])
    return found


def _wrong_files(rows: list[list[str]], contract: Contract, question: str) -> dict[str, str]:
    head, *body = rows
    if not any(cell for row in body for cell in row):
        return {}
    found = {"with a header only": _printed([head]), "with a row too many": _printed([*rows, ["7"] * len(head)])}
    if len(body) > 1:
        found["with half of its rows"] = _printed([head, *body[: len(body) // 2]])
    return found


def cheats(case: AgentCase, turn: AgentTurn) -> Mapping[str, str]:
    """Returns all labels, the answer in an order that is not asked for, and what does not do the work.

    The last are the right answer alone and wrong files, if the gold changes something.
    """
    labels = [one.labels for one in turn.gold.checks if isinstance(one, AnswerCheck) and one.labels]
    told = {"all options at once": script_text(with_answer(turn, ", ".join(labels[0])))} if labels else {}
    if any(isinstance(one, AnswerCheck) for one in turn.gold.checks) and not turn.gold.unanswerable:
        turned = _turned(turn.gold.accepted[-1]) if _asks_for_order(turn, _last_question(case, turn)) else {}
        told |= {kind: script_text([*turn.gold.script[:-1], _answer(other)]) for kind, other in turned.items()}
    found = gold_run(case)
    if isinstance(found, str) or not found.end_state:
        return told
    alone = {"the answer without the work": script_text([turn.gold.script[-1]])}
    return told | alone | _with_files(turn, _wrong_files)


def _written(answer: Json) -> dict[str, Json]:
    if isinstance(answer, bool):
        return {"as a word": "yes" if answer else "no"}
    if isinstance(answer, int | float):
        printed = f"{answer:,}"
        return {"as text": str(answer), "with separators": printed, "in a sentence": f"The answer is {printed}."}
    if isinstance(answer, str):
        return {"in bold": f"**{answer}**", "in an object": {"result": answer}}
    if isinstance(answer, list) and answer and all(isinstance(one, dict) for one in answer):
        return _tables(answer)
    if isinstance(answer, list) and len(answer) > 1:
        lines = "\n".join(f"- {one}" for one in answer)
        return {"as lines": lines, "as JSON in text": json_text(answer)}
    return {"as JSON in text": json_text(answer)}


def _tables(items: list[dict[str, Json]]) -> dict[str, Json]:
    names = list(items[0])
    rows = [[one.get(name) for name in names] for one in items]
    lines: list[list[Json]] = [list(names), ["---"] * len(names), *rows]
    markdown = "\n".join(f"| {' | '.join('' if cell is None else str(cell) for cell in line)} |" for line in lines)
    return {
        "as a table of Markdown": markdown,
        "as columns and rows": {"columns": names, "rows": rows},
        "under other names": [{f"{name}_": cell for name, cell in one.items()} for one in items],
    }
