"""The fake Anthropic server as a process of its own, for benchmarks and for tests that kill what talks to it.

python -m eval_pipeline_tests.fakes.anthropic_process --latency 1 --fail 429:0.15 --fail 529:0.15

It says {"url": …, "key": …} on standard output and ends with its standard input.
"""

import argparse
import json
import sys
from pathlib import Path

from eval_pipeline_tests.fakes import anthropic_faults as faulty
from eval_pipeline_tests.fakes.anthropic_messages import question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer

_KNOWN = {429: faulty.RATE_LIMITED, 529: faulty.OVERLOADED}


def main() -> None:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=Path, help="a JSON file: last text of the user → answer")
    parser.add_argument("--answer", default="answer", help="what is answered to everything else")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--first-byte", type=float, default=None)
    parser.add_argument("--fail", action="append", default=[], metavar="STATUS:RATE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-polls", type=int, default=1)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    table: dict[str, str] = json.loads(given.answers.read_text()) if given.answers else {}
    server = AnthropicServer(
        lambda body: table.get(question(body), given.answer),
        faults=faulty.RandomFaults(dict(map(_rate, given.fail)), given.seed),
        latency_s=given.latency,
        first_byte_s=given.first_byte,
        batch_polls=given.batch_polls,
        keep_bodies=False,
        port=given.port,
    )
    with server:
        print(json.dumps({"url": server.url, "key": KEY}), flush=True)
        sys.stdin.read()


def _rate(wanted: str) -> tuple[faulty.Fault, float]:
    status, _, rate = wanted.partition(":")
    return _KNOWN.get(int(status), faulty.Status(int(status))), float(rate)


if __name__ == "__main__":
    main()
