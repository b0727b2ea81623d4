"""Defines what a page of the workbench is, and what it receives."""

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
from eval_pipeline.view.drawing import render
from eval_pipeline.view.published import PublishedStore, StoreView
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.watching.running import seen


class NotFoundError(EvalError):
    """Something that an address names is not in the store; the message says what."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all pages share.

    Attributes:
        home: the home whose store is shown.
        published: its store.
    """

    home: Home
    published: PublishedStore

    @classmethod
    @contextmanager
    def of(cls, home: Home) -> Iterator["Bench"]:
        """Opens the bench of a home; its store is closed at the end."""
        place = place_of(home)
        published = PublishedStore(home.store, place.fresh_store if place.is_shared else None)
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
        request: the request; its body is in `form`.
        form: fields of a POST, each with all its values; empty for a GET.
    """

    bench: Bench
    look: StoreView
    request: Request
    form: Mapping[str, list[str]]

    @property
    def suite(self) -> str:
        """The suite in the path."""
        return str(self.request.path_params["suite"])

    def argument(self, name: str, default: str = "") -> str:
        """Returns the last value of that name in the address."""
        return str(self.request.query_params.get(name, default))

    def field(self, name: str) -> str:
        """Returns the last value of a field of the form; empty if there is none."""
        return self.form.get(name, [""])[-1]

    @property
    def keepable(self) -> str:
        """The address of this page if it can be kept as a view: a list of turns, or evaluations side by side."""
        path = self.request.url.path
        if not path.endswith(("/turns", "/compare")):
            return ""
        return f"{path}?{self.request.url.query}" if self.request.url.query else path

    def page(self, template: str, title: str, status: HTTPStatus = HTTPStatus.OK, **values: Any) -> Response:
        """Renders a page from a template."""
        html = render(template, title=title, visit=self, runs=seen(self.bench.home), **values)
        return HTMLResponse(html.encode(errors="replace"), status.value)


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a group of pages with a common path.

    Attributes:
        path: in the form of Starlette's routes.
        respond: makes the response. It runs in a separate thread. It may raise `NotFoundError`, and other `EvalError`s
            for mistakes in the address or the form.
        methods: the HTTP methods that it answers.
        stored: whether it shows what is in the store; another must not use `look`, and is there before any store.
    """

    path: str
    respond: Callable[[Visit], Response]
    methods: tuple[str, ...] = ("GET",)
    stored: bool = True


def whole_number(text: str) -> int:
    """Reads a non-negative number from an address or a form. Raises a UsageError if it is invalid or too large."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"'{text:.40}' is not a whole number from 0 to 999,999,999")
    return int(text)
