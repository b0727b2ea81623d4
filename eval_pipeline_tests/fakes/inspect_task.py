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
    act(f"{folder}/agent")


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


def act(folder: str) -> None:
    """Evaluates an agent with a tool: it fails once and submits; or it says its answer; or it never ends."""
    import inspect_ai
    from inspect_ai.agent import AgentPrompt, react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match
    from inspect_ai.tool import ToolError, tool

    @tool
    def spent() -> Any:
        async def execute(customer: str) -> str:
            """Tells what a customer spent.

            Args:
                customer: the name.
            """
            if customer != "Ada":
                raise ToolError(f"there is no customer '{customer}'")
            return "40.5"

        return execute

    def said(content: str, tool: str = "", **arguments: Any) -> Any:
        output = ModelOutput.from_content("mockllm/model", content)
        if tool:
            output = ModelOutput.for_tool_call("mockllm/model", tool, arguments, content=content)
        output.usage = ModelUsage(input_tokens=30, output_tokens=7, total_tokens=37)  # else a tokenizer is fetched
        return output

    ways = {
        "submits": [
            said("Eve?", "spent", customer="Eve"),
            said("", "spent", customer="Ada"),
            said("", "submit", answer="40.5"),
        ],
        "says": [said("", "spent", customer="Ada"), said("It is 40.5.")],
        "repeats": [said("", "spent", customer="Ada")] * 9,
    }

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        way = next(message.text for message in messages if message.role == "user")
        return ways[way][sum(message.role == "assistant" for message in messages)]

    prompt = AgentPrompt(instructions=None, handoff_prompt=None, assistant_prompt=None, submit_prompt=None)
    for submits in (True, False):
        samples = [Sample(id=way, input=way, target="40.5") for way in ways if (way != "says") == submits]
        solver = react(prompt=prompt, tools=[spent()], submit=submits)
        task = inspect_ai.Task(dataset=samples, solver=solver, scorer=match(), name="agent", message_limit=8)
        model = get_model("mockllm/model", custom_outputs=answer)
        inspect_ai.eval(task, model=model, display="none", max_samples=1, log_dir=folder, log_format="json")


if __name__ == "__main__":
    main(*sys.argv[1:])
