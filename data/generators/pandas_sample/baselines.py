"""Writes answers to pandas_sample that nobody should get anything for: `python baselines.py FOLDER`, a file each.

Each file is recorded answers (docs/recorded-answers.md).
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

SUITE = Path(__file__).parents[2] / "suites" / "pandas_sample"
Turn = Mapping[str, Any]


def zero(turn: Turn, table: str) -> str:
    """Returns code that answers 0."""
    return "result = 0"


def dead_code(turn: Turn, table: str) -> str:
    """Returns code that answers 0 and has the right code where it is never run."""
    lines = "".join(f"    {line}\n" for line in turn["code"].splitlines())
    return f"result = 0\nif pd is None:\n{lines}"


def first_mean(turn: Turn, table: str) -> str:
    """Returns code that answers the mean of the first column of numbers."""
    return f'result = {table}.select_dtypes("number").iloc[:, 0].mean()'


def head(turn: Turn, table: str) -> str:
    """Returns code that answers the first rows."""
    return f"result = {table}.head()"


def question_numbers(turn: Turn, table: str) -> str:
    """Returns code that answers the numbers in the question."""
    found = re.findall(r"\d+(?:\.\d+)?", turn["question"])
    numbers = [float(number) if "." in number else int(number) for number in found]
    return f"result = {numbers[0] if len(numbers) == 1 else numbers}"


BASELINES: Mapping[str, Callable[[Turn, str], str]] = {
    one.__name__: one for one in (zero, dead_code, first_mean, head, question_numbers)
}


def lines_of(baseline: Callable[[Turn, str], str]) -> list[dict[str, Any]]:
    """Returns the recorded answers of a baseline."""
    found = []
    for file in sorted((SUITE / "cases").glob("*.yaml")):
        for case in yaml.safe_load(file.read_text(encoding="utf-8")):
            table = case["tables"] if isinstance(case["tables"], str) else case["tables"][0]
            for index, turn in enumerate(case["turns"]):
                code = baseline(turn, table)
                found.append({"case_id": case["id"], "turn_index": index, "response": {"code": code}})
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, baseline in BASELINES.items():
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines_of(baseline))
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
