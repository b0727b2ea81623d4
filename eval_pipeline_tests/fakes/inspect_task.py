"""Small evaluations by the real inspect-ai with its mock model; run as a program: the folder of the logs."""

import sys
from typing import Any

ASKED = (("alpha", 0, "50"), ("alpha", 1, "50 + 7"), ("beta", 0, "(50 - 8) / 50"))


def answered(kind: str) -> Any:
    """What the mock model says to a question: right in the first epoch, then wrong; `broken` fails on beta."""
    from inspect_ai.model import ModelOutput, ModelUsage

    seen: list[str] = []

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        asked = messages[-1].text.removeprefix("Compute ")
        seen.append(asked)
        if kind == "broken" and asked.startswith("("):
            raise RuntimeError("the endpoint broke")
        said = asked if seen.count(asked) == 1 else "1 + 1"
        output = ModelOutput.from_content("mockllm/model", f'{{"calculation": "{said}"}}')
        output.usage = ModelUsage(input_tokens=20, output_tokens=5, total_tokens=28, input_tokens_cache_read=3)
        return output

    return answer


def main(folder: str) -> None:
    """Writes a log of each kind, in a folder of its own."""
    logs: tuple[tuple[str, Any], ...] = (("broken", "eval"), ("conversation", "json"))
    for kind, log_format in logs:
        evaluate(f"{folder}/{kind}", log_format, kind)


def evaluate(folder: str, log_format: Any, kind: str) -> None:
    """Evaluates the turns of the suite `small`, or conversations of them."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import TaskState, generate, solver, system_message

    @solver
    def second_turn() -> Any:
        async def solve(state: TaskState, generate: Any) -> TaskState:
            state.messages.append(ChatMessageUser(content="Compute 50 + 7"))
            return await generate(state)

        return solve

    if kind == "conversation":
        samples = [Sample(id="alpha", input="Compute 50", target="57")]
        solvers = [generate(), second_turn()]
    else:
        samples = [
            Sample(id=f"{case}-{turn}", input=f"Compute {q}", target=q, metadata={"case_id": case, "turn_index": turn})
            for case, turn, q in ASKED
        ]
        solvers = [system_message("You compute."), generate()]
    task = inspect_ai.Task(dataset=samples, solver=solvers, scorer=match(), name="tiny")
    model = get_model("mockllm/model", custom_outputs=answered(kind))
    quietly = {"max_samples": 1, "display": "none", "log_dir": folder, "log_format": log_format, "fail_on_error": False}
    epochs = 1 if kind == "conversation" else 2
    inspect_ai.eval(task, model=model, epochs=epochs, temperature=0.2, max_tokens=99, **quietly)


if __name__ == "__main__":
    main(*sys.argv[1:])
