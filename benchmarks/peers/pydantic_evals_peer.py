"""pydantic-evals: one evaluator; nothing is stored. Run by the interpreter that has it: SAMPLES FOLDER."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext

samples = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
answers = {sample["input"]: sample["answer"] for sample in samples}


@dataclass
class Equal(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return ctx.output == ctx.expected_output


async def task(text: str) -> str:
    return answers[text]


cases = [Case(name=one["id"], inputs=one["input"], expected_output=one["expected"]) for one in samples]
dataset = Dataset(name="peer", cases=cases, evaluators=[Equal()])
report = dataset.evaluate_sync(task, progress=False, max_concurrency=64)
print(sum(case.assertions["Equal"].value for case in report.cases))
