"""The command `view`: serves the workbench on a local address until interrupted."""

import gc
import socket
import sys
from contextlib import suppress

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.system.memory import limit_arenas
from eval_pipeline.core.system.private import make_private
from eval_pipeline.web.guard import LOOPBACK, Door, further_names
from eval_pipeline.web.token import token_of

_GARBAGE = (10_000, 10, 10)
_ARENAS = 2
_PATIENCE_S = 5
"""Seconds that running requests get to finish at the end."""


def serve(home: Home, host: str, port: int, *, with_token: bool = True) -> None:
    """Serves the workbench of a home until it is interrupted.

    Raises:
        UsageError: the home is not a folder, or the address cannot be used.
    """
    import pyarrow as pa
    import uvicorn

    from eval_pipeline.view.page import Bench
    from eval_pipeline.view.pages.home import cards_of
    from eval_pipeline.view.serving.app import application
    from eval_pipeline.web.patience import Impatient

    make_private(home.root)
    if not home.root.is_dir():
        raise UsageError(f"{home.root} is not a folder; set EVAL_HOME to one")
    # The command line hardly ever collects garbage; a long-running server has to.
    gc.set_threshold(*_GARBAGE)
    limit_arenas(_ARENAS)
    # Arrow's own allocator keeps what was freed; drawing a queue would grow the process for good.
    pa.set_memory_pool(pa.system_memory_pool())
    with _listening(host, port) as listening, Bench.of(home) as bench:
        port = listening.getsockname()[1]
        token = token_of(home.ui_token) if with_token else None
        name = f"[{host}]" if ":" in host else host
        door = Door(port, token, LOOPBACK | {name.lower()}, further_names(), forms=True, command="view")
        sys.stdout.write(f"open http://{name}:{port}{f'/?token={token}' if token else ' (it asks for no token)'}\n")
        sys.stdout.flush()
        # What the first page shows is read while somebody opens its address, who waits, as we listen already. Of what
        # goes wrong here the page tells.
        with suppress(Exception), bench.published.look() as look:
            cards_of(look, {}, with_retired=False)
        settings = uvicorn.Config(
            application(bench, door),
            http=Impatient,
            log_level="warning",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_PATIENCE_S,
        )
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after its own shutdown
            uvicorn.Server(settings).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen()  # a browser that opens the printed address at once must wait instead of failing
    except OSError as error:
        found.close()
        raise UsageError(f"cannot serve at {host}:{port}: {error.strerror}; give another --port") from error
    return found
