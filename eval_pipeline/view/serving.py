"""Serves the workbench on a local address until interrupted: the ASGI application, its policy, pages of errors."""

import gc
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from eval_pipeline.core.errors import EvalError, StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.installed.plugins import at_fault
from eval_pipeline.core.system.memory import limit_arenas
from eval_pipeline.core.system.private import make_private
from eval_pipeline.view.drawing import render, static_file
from eval_pipeline.view.page import Bench, NotFoundError, Page, Visit
from eval_pipeline.view.pages import PAGES
from eval_pipeline.view.published import StoreView
from eval_pipeline.web.asgi import Guarded
from eval_pipeline.web.guard import LOOPBACK, Door, further_names, token_of
from eval_pipeline.workspace.watching.running import SeenRun, seen

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

    from eval_pipeline.view.pages.home import cards_of
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


POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
"""The content security policy: a page may only load what this server sends, and no inline scripts or styles."""
STATIC = {
    "style.css": "text/css",
    "chart.css": "text/css",
    "keys.js": "text/javascript",
    "watch.js": "text/javascript",
}
_MOST_FORM = 1_000_000
"""The most bytes that a form may have."""


def application(bench: Bench, door: Door, pages: Sequence[Page] = PAGES) -> ASGIApp:
    """Returns the application for the workbench of a home, with access control by the door."""
    routes = [Route(page.path, _endpoint(page, bench), methods=list(page.methods)) for page in pages]
    routes.append(Route("/static/{name}", _static))
    made = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, Exception: _fault})
    return Guarded(made, door, POLICY)


def _endpoint(page: Page, bench: Bench) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            form = await _form(request) if request.method == "POST" else {}
        except ClientDisconnect:  # nobody is left to be told; half a form says nothing
            return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)
        return await run_in_threadpool(_answer, page, bench, request, form)

    return endpoint


def _answer(page: Page, bench: Bench, request: Request, form: dict[str, list[str]]) -> Response:
    try:
        with bench.published.look() if page.stored else nullcontext(cast("StoreView", None)) as look:
            answer = page.respond(Visit(bench, look, request, form))
    except NotFoundError as error:
        answer = problem(HTTPStatus.NOT_FOUND, "Not there", str(error))
    except StoreError as error:
        runs = seen(bench.home)  # the first run makes the store
        answer = problem(HTTPStatus.SERVICE_UNAVAILABLE, "No store to show", str(error), runs)
    except EvalError as error:
        answer = problem(HTTPStatus.BAD_REQUEST, "That cannot be shown", str(error))
    answer.headers.setdefault("Cache-Control", "no-store")
    return answer


async def _form(request: Request) -> dict[str, list[str]]:
    """Returns the fields of a form or of a JSON object, whose values are texts or lists of texts."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_FORM:
            return {}
    if request.headers.get("content-type", "").startswith("application/json"):
        return _json_form(bytes(body))
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def _json_form(body: bytes) -> dict[str, list[str]]:
    import json

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: [str(one) for one in value] if isinstance(value, list) else [str(value)] for name, value in found.items()
    }


def problem(status: HTTPStatus, title: str, message: str, runs: Sequence[SeenRun] = ()) -> Response:
    """Returns a page that reports a problem."""
    return HTMLResponse(render("problem.html.j2", title=title, message=message, runs=runs), status.value)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        return problem(HTTPStatus.NOT_FOUND, "Not there", "There is no such file.")
    return Response(static_file(name), media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


async def _not_found(request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.NOT_FOUND, "Not there", "There is no such page.")


async def _fault(request: Request, error: Exception) -> Response:
    text = f"{type(error).__name__} (a fault of {at_fault(error)}; the terminal shows where)"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "That went wrong", text)
