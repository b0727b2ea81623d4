"""The llama.cpp server as a process of its own: `python -m eval_pipeline.providers.local.server MODEL …`.

Writes one line of JSON with its address once it listens. Ends when its standard input does, or when its parent is gone:
it never outlives the run that started it, however that ended.
"""

import argparse
import json
import os
import select
import sys
import threading
import time
from importlib import import_module
from typing import Any

_LOOK_FOR_PARENT_S = 1.0


def main() -> None:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m eval_pipeline.providers.local.server")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096, help="tokens a conversation may have")
    parser.add_argument("--parallel", type=int, default=1, help="conversations served at once")
    arguments = parser.parse_args()
    # Before the model is loaded, which takes a while: the parent may be killed meanwhile.
    watch = threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True)
    watch.start()

    # Whatever the C++ side prints is to go to the log, so the line of the address has a pipe of its own.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    started = time.perf_counter()
    server = _serve(arguments)
    told.write(json.dumps({"address": server.listening_address, "seconds": time.perf_counter() - started}) + "\n")
    told.close()
    watch.join()


def _serve(arguments: argparse.Namespace) -> Any:
    xllamacpp: Any = import_module("xllamacpp")  # without types, and an extra
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.n_ctx = arguments.context * arguments.parallel  # it is shared out between the conversations
    params.n_parallel = arguments.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system's choice, so that two runs never want the same one
    params.warmup = False  # the first request does as much, and a journalled run has none
    params.verbosity = 0
    return xllamacpp.Server(params)


def _end_with_parent(parent: int) -> None:
    """Ends the process when standard input is closed or another process has become its parent.

    Closing is the usual way. But whoever the parent forked meanwhile may hold the other end open still.
    """
    descriptor = sys.stdin.fileno()
    while os.getppid() == parent:
        readable, _, _ = select.select([descriptor], [], [], _LOOK_FOR_PARENT_S)
        if readable and not os.read(descriptor, 4096):
            break
    # At once: leaving the usual way would wait for the server's threads, busy with an answer nobody wants any more.
    os._exit(0)


if __name__ == "__main__":
    main()
