"""pydantic-evals, by the interpreter that has it: SAMPLES FOLDER SCORERS STORING; stores its report or nothing."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter

samples = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
answers = {sample["input"]: sample["answer"] for sample in samples}


@dataclass
class Equal(Evaluator):
    name: str

    def get_default_evaluation_name(self) -> str:
        return self.name

    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return ctx.output == ctx.expected_output


async def task(text: str) -> str:
    return answers[text]


names = [f"equal_{number}" for number in range(int(sys.argv[3]))]
cases = [Case(name=one["id"], inputs=one["input"], expected_output=one["expected"]) for one in samples]
dataset = Dataset(name="peer", cases=cases, evaluators=[Equal(name) for name in names])
report = dataset.evaluate_sync(task, progress=False, max_concurrency=64)
if sys.argv[4]:
    Path(sys.argv[2], "report.json").write_bytes(EvaluationReportAdapter.dump_json(report))
print(sum(case.assertions[names[0]].value for case in report.cases))
