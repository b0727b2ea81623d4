"""A lab whose model is behind the fake Anthropic server; and a program for child processes that are to be killed.

python -m eval_pipeline_tests.remote run …      the command line, with batches polled quickly
python -m eval_pipeline_tests.remote VERSION …  evaluates `small` with these model versions, without Dagster
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

from eval_pipeline.asking.batches.work import Pace
from eval_pipeline.core.home import find_home
from eval_pipeline.stages.attempts import model_calls
from eval_pipeline_tests.fakes.anthropic_messages import Body, question
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.support import BROKEN, DAY, Lab, case, number

MODULE = "eval_pipeline_tests.remote"
VERSION = "claude"
PACE = Pace(linger_s=0.05, first_poll_s=0.02, longest_poll_s=0.1, listed_after_s=0.3)
TURNS = (("50", 50.0), ("add(50, 7)", 57.0), ("subtract(50, 1)", 49.0), ("7", 7.0))
RUN = ("run", "--no-report", "--eval-date", DAY.isoformat())


def answers(body: Body) -> str:
    """The same for the same question: about every fifth does not parse at first, the others are sometimes right."""
    asked = question(body)
    if "That failed with this error" in asked:
        return number(57)
    return BROKEN if crc32(asked.encode()) % 5 == 0 else number(50)


def prepare(lab: Lab, server: AnthropicServer, conversations: int = 12, **settings: Any) -> Lab:
    """A suite `small` and the model version `claude`."""
    lab.suite(cases=[case(f"c{i:03}", *TURNS) for i in range(conversations)])
    entry = {"name": VERSION, "provider": "anthropic", "model": "claude-fake-1", "max_tokens": 200}
    entry |= {"price": {"input": 1, "output": 2}, "options": {"base_url": server.url}, "concurrency": 8}
    lab.versions(entry | settings)
    return lab


def contents(lab: Lab) -> dict[str, list[tuple[Any, ...]]]:
    """What was published, but for what differs from call to call: latency, request ids, retries."""
    return {
        "attempts": lab.sql(
            "SELECT turn_id, sample, number, prompt_hash, response, outcome, result, call_error, stop_reason, "
            "input_tokens, output_tokens, usd FROM attempts ORDER BY ALL"
        ),
        "turn_results": lab.sql(
            "SELECT turn_id, answer, correct, error_class, tokens, usd FROM turn_results ORDER BY ALL"
        ),
        "statistics": lab.sql(
            "SELECT metric, split, split_value, n, mean FROM statistics WHERE metric NOT LIKE 'latency%' ORDER BY ALL"
        ),
        "cost": lab.sql("SELECT tokens_total, usd_total, successful_conversations FROM cost_per_correct_answer"),
    }


def charged(server: AnthropicServer) -> Counter[str]:
    """How often each question was paid for."""
    return Counter(server.model.charged)


def holding(folder: Path, secret: str) -> list[str]:
    """Files below a folder that hold a secret."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def main() -> None:
    model_calls.PACE = PACE
    sys.argv[0] = "eval-pipeline"
    if sys.argv[1] != RUN[0]:
        for version in sys.argv[1:]:
            Lab(find_home()).evaluate(version=version, publish=True)
        return
    from eval_pipeline.cli import main as command

    command()


if __name__ == "__main__":
    main()
