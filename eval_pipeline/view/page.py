"""What a page of the workbench is, and what it is handed."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.view.published import Look, Published
from eval_pipeline.view.rendering import render


class NotFoundError(EvalError):
    """What an address names is not in the store; the message says what."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all pages share.

    Attributes:
        home: whose store is shown.
        published: that store.
    """

    home: Home
    published: Published

    @classmethod
    @contextmanager
    def of(cls, home: Home) -> Iterator["Bench"]:
        """That of a home; its store is closed at the end."""
        published = Published(home.store)
        try:
            yield cls(home, published)
        finally:
            published.close()


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page.

    Attributes:
        bench: what all pages share.
        look: the store as this request sees it.
        request: as it came; its body is in `form`.
        form: fields of a POST, each with all its values; empty for a GET.
    """

    bench: Bench
    look: Look
    request: Request
    form: Mapping[str, list[str]]

    @property
    def suite(self) -> str:
        """The suite in the path."""
        return str(self.request.path_params["suite"])

    def argument(self, name: str, default: str = "") -> str:
        """The last value of that name in the address."""
        return str(self.request.query_params.get(name, default))

    def page(self, template: str, title: str, status: HTTPStatus = HTTPStatus.OK, **values: Any) -> Response:
        """A page made from a template."""
        html = render(template, title=title, visit=self, **values)
        return HTMLResponse(html.encode(errors="replace"), status.value)


@dataclass(frozen=True, slots=True)
class Page:
    """An address of the workbench.

    Attributes:
        path: in the form of Starlette's routes.
        respond: makes the answer. It runs in a thread of its own, may raise `NotFoundError`, and any other `EvalError`
            for what the address or the form has wrong.
        methods: that it answers.
    """

    path: str
    respond: Callable[[Visit], Response]
    methods: tuple[str, ...] = ("GET",)


def whole_number(text: str) -> int:
    """A number of an address or a form, from 0. Raises UsageError where it is none that a table could hold."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"'{text:.40}' is no whole number from 0 to 999,999,999")
    return int(text)
