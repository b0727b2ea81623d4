"""inspect-ai, by the interpreter that has it: SAMPLES FOLDER SCORERS; a log with every sample."""

import json
import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver

samples = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]


@solver
def answered() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output.completion = state.metadata["answer"]
        return state

    return solve


dataset = MemoryDataset(
    [
        Sample(id=one["id"], input=one["input"], target=one["expected"], metadata={"answer": one["answer"]})
        for one in samples
    ]
)
task = Task(dataset=dataset, solver=answered(), scorer=[match(location="exact") for _ in range(int(sys.argv[3]))])
(log,) = evaluate(task, model="mockllm/model", display="none", log_dir=sys.argv[2], max_samples=64)
accuracy = log.results.scores[0].metrics["accuracy"].value
print(round(accuracy * len(samples)))
