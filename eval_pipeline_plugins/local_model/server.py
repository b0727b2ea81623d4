"""The llama.cpp server as a separate process: `python -m eval_pipeline_plugins.local_model.server MODEL …`.

It writes one line of JSON with its address when it listens. It ends when its standard input is closed or its parent has
ended, so it never outlives the run that started it.
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
    """Serves until standard input is closed."""
    parser = argparse.ArgumentParser(prog="python -m eval_pipeline_plugins.local_model.server")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096, help="tokens a conversation may have")
    parser.add_argument("--parallel", type=int, default=1, help="conversations served at once")
    arguments = parser.parse_args()
    # Started before loading the model, which takes a while; the parent may be killed meanwhile.
    watch = threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True)
    watch.start()

    # All output of the C++ code goes to the log, so the line with the address uses a pipe of its own.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    started = time.perf_counter()
    server = _serve(arguments)
    told.write(json.dumps({"address": server.listening_address, "seconds": time.perf_counter() - started}) + "\n")
    told.close()
    watch.join()


def _serve(arguments: argparse.Namespace) -> Any:
    xllamacpp: Any = import_module("xllamacpp")  # an optional package without type hints
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.n_ctx = arguments.context * arguments.parallel  # divided between the conversations
    params.n_parallel = arguments.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # chosen by the system, so that two runs never collide
    params.warmup = False  # the first request warms up too, and a run answered from the journal needs none
    params.verbosity = 0
    return xllamacpp.Server(params)


def _end_with_parent(parent: int) -> None:
    """Ends this process when standard input is closed or its parent has changed.

    Closing standard input is the usual way. But a process that the parent has forked may still hold the other end open.
    """
    descriptor = sys.stdin.fileno()
    while os.getppid() == parent:
        readable, _, _ = select.select([descriptor], [], [], _LOOK_FOR_PARENT_S)
        if readable and not os.read(descriptor, 4096):
            break
    # Exit immediately: a normal exit would wait for server threads that compute an answer nobody needs.
    os._exit(0)


if __name__ == "__main__":
    main()
