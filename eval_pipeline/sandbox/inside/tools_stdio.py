"""The tools of a case as MCP over standard input and output, for agents that know no other way.

A program has its agent start `python /box/inside/tools_stdio.py`; each message is passed on to EVAL_TOOLS.
"""

import os
import sys
import urllib.error
import urllib.request


def main() -> None:
    """Passes on each line, and what is answered, until there are no more."""
    for line in filter(bytes.strip, sys.stdin.buffer):
        told = {"content-type": "application/json"}
        request = urllib.request.Request(os.environ["EVAL_TOOLS"], line, told)  # noqa: S310 - its own address
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - likewise
                found = answer.read()
        except urllib.error.HTTPError as error:
            found = error.read()
        if found:
            sys.stdout.buffer.write(found + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
