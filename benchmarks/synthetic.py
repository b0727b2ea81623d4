"""Suites of any size with the responses of an instant model.

One of finqa with distinct documents, programs and operands, and one of text with the samples that peers evaluate.
"""

import json
from pathlib import Path
from random import Random

TURNS_PER_CASE = 4
WORDS = (
    "revenue operating segment impairment goodwill lease pension hedge inventory receivable dividend amortisation "
    "restructuring deferred subsidiary acquisition currency maturity covenant settlement backlog warranty"
).split()
YEARS = (2023, 2022, 2021, 2020)


def write_suite(folder: Path, turns: int, seed: int = 0) -> dict[str, str]:
    """Writes a suite of about `turns` turns; returns the responses by turn id.

    Of the responses a tenth does not parse or run, and a third runs to a wrong answer.
    """
    rng = Random(seed)
    folder.mkdir(parents=True)
    name = folder.name
    header = f'name: {name}\nversion: "1"\ntrack: finqa\ncases: cases.jsonl\n'
    (folder / "suite.yaml").write_text(header)
    responses: dict[str, str] = {}
    with (folder / "cases.jsonl").open("w") as file:
        for number in range(turns // TURNS_PER_CASE):
            case = _case(rng, number)
            file.write(json.dumps(case) + "\n")
            for index, turn in enumerate(case["turns"]):
                turn_id = f"{name}/{case['id']}#{index}"
                responses[turn_id] = _response(rng, turn["program"])
    return responses


def samples(count: int) -> list[dict[str, str]]:
    """Short questions with their answers, of which a third is wrong."""
    found = []
    for number in range(count):
        expected = f"{number * 7 % 100_003}"
        answer = expected if number % 3 else f"{expected}0"
        question = f"What is item {number} worth, in thousands of dollars?"
        found.append({"id": str(number), "input": question, "expected": expected, "answer": answer})
    return found


_TEXT = 'version: "1"\ntrack: text\ncases: cases.jsonl\noptions: {answer: {form: text}, metrics: [exact]}\n'


def write_samples(folder: Path, turns: int) -> dict[str, str]:
    """Writes a suite with one turn and one scorer for each of the samples; returns the responses by turn id."""
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(f"name: {folder.name}\n{_TEXT}")
    found = samples(turns)
    cases = (json.dumps({"id": one["id"], "question": one["input"], "answer": one["expected"]}) for one in found)
    (folder / "cases.jsonl").write_text("\n".join(cases) + "\n")
    return {f"{folder.name}/{one['id']}#0": one["answer"] for one in found}


def _case(rng: Random, number: int) -> dict:
    rows = [[f"{rng.choice(WORDS)} {k}", *(round(rng.uniform(10, 9999), 1) for _ in YEARS)] for k in range(8)]
    turns = []
    for index in range(TURNS_PER_CASE):
        row = rng.choice(rows)
        new, old = rng.sample(range(1, len(YEARS) + 1), 2)
        a, b = row[new], row[old]
        program, answer = _programs(a, b)[index % 4]
        turns.append(
            {"question": f"{row[0]}: {YEARS[new - 1]} and {YEARS[old - 1]}?", "program": program, "answer": answer}
        )
    return {
        "id": f"page_{number}",
        "tags": ["synthetic"],
        "document": {
            "pre_text": _prose(rng, 180),
            "table": [["in millions", *map(str, YEARS)], *([row[0], *map(str, row[1:])] for row in rows)],
            "post_text": _prose(rng, 180),
        },
        "turns": turns,
    }


def _programs(a: float, b: float) -> tuple[tuple[str, float], ...]:
    return (
        (f"{a}", a),
        (f"subtract({a}, {b})", round(a - b, 5)),
        (f"subtract({a}, {b}), divide(#0, {b})", round((a - b) / b, 5)),
        (f"add({a}, {b}), divide(#0, const_2), subtract(#1, {b})", round((a + b) / 2 - b, 5)),
    )


def _prose(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) if rng.random() < 0.95 else str(rng.randint(1, 5000)) for _ in range(words))


def _response(rng: Random, program: str) -> str:
    drawn = rng.random()
    if drawn < 0.05:
        return '{"plan": [{"tool": "extract", '
    steps: list[dict] = []
    if "(" not in program:
        steps.append({"tool": "extract", "value": float(program), "source": "table"})
    for part in program.split("), ") if "(" in program else ():
        operation, _, inside = part.rstrip(")").partition("(")
        args = [arg if arg.startswith(("#", "const")) else float(arg) for arg in inside.split(", ")]
        steps.append({"tool": "compute", "operation": operation, "args": args})
    if drawn < 0.10:
        steps.append({"tool": "compute", "operation": "divide", "args": [1, 0]})
    elif drawn < 0.10 + 1 / 3:
        steps.append({"tool": "compute", "operation": "multiply", "args": [f"#{len(steps) - 1}", 1.7]})
    return json.dumps({"plan": steps})
