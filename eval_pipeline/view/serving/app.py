"""The workbench as an ASGI application: pages, static files, error pages, and the access guard in front of them."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.view.drawing.rendering import render, static_file
from eval_pipeline.view.page import Bench, NotFoundError, Page, Visit
from eval_pipeline.view.pages import PAGES
from eval_pipeline.view.published import StoreView
from eval_pipeline.web.asgi import Guarded
from eval_pipeline.web.guard import Door
from eval_pipeline.workspace.watching.running import SeenRun, seen

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
    text = f"{type(error).__name__} (a fault of eval-pipeline; the terminal shows where)"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "That went wrong", text)
