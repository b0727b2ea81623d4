"""The home page: a card for every suite, newest first, with its pictures and a short table of its model versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import RedirectResponse, Response

from eval_pipeline.core.errors import UsageError
from eval_pipeline.view.filtering.questions import QuestionLink, questions
from eval_pipeline.view.overview.columns import COLUMNS, chosen
from eval_pipeline.view.overview.figures import ModelVersionLine, SuiteLines, suites_of
from eval_pipeline.view.overview.kept import KeptViews, forget_view, keep_columns, keep_view, kept_in
from eval_pipeline.view.overview.pictures import Picture, pictures_of
from eval_pipeline.view.page import Page, Visit
from eval_pipeline.view.published import StoreView

_ASKED = ("show", "retired", "about")
"""What an address of this page may ask for: columns, retired model versions, and of which one a card tells."""


@dataclass(frozen=True, slots=True)
class SuiteCard:
    """A suite with its pictures, and what people ask of the model version that they tell about."""

    of: SuiteLines
    pictures: Sequence[Picture]
    questions: Sequence[QuestionLink]

    @property
    def sql(self) -> list[str]:
        """The queries of everything on the card."""
        return list(dict.fromkeys(query for picture in self.pictures for query in picture.sql))


def _respond(visit: Visit) -> Response:
    retired = bool(visit.argument("retired"))
    arguments = visit.request.query_params
    about = dict(reversed([_suite_and_rest(value) for value in arguments.getlist("about")]))
    cards = cards_of(visit.look, about, with_retired=retired)
    kept, problem = _kept(visit)
    return visit.page(
        "home.html.j2",
        "Evaluations",
        cards=cards,
        losses=_losses(cards),
        with_retired=retired,
        kept=kept,
        kept_problem=problem,
        all_columns=COLUMNS,
        columns=chosen(arguments.getlist("show"), kept.columns),
        asked_for={name: arguments.getlist(name) for name in _ASKED},
    )


def _suite_and_rest(about: str) -> tuple[str, str]:
    suite, _, model_version = about.partition("/")
    return suite, model_version


def cards_of(look: StoreView, about: Mapping[str, str], *, with_retired: bool) -> list[SuiteCard]:
    """Returns the cards; `about` names the model versions that readers chose, by suite."""
    suites = look.remembered(("home", with_retired), lambda: suites_of(look, with_retired=with_retired))
    return [_card(look, replace(found, about=about.get(found.name, "")), with_retired) for found in suites]


def _card(look: StoreView, found: SuiteLines, with_retired: bool) -> SuiteCard:
    told = found.told.partition
    of = ("card", found.name, told.model_version, with_retired)
    card = look.remembered(of, lambda: SuiteCard(found, pictures_of(look, found), questions(look, told)))
    return replace(card, of=found)


def _losses(cards: Sequence[SuiteCard]) -> list[ModelVersionLine]:
    """Returns the model versions with an open loss that nobody has acknowledged, the largest first."""
    lines = [line for card in cards for line in card.of.lines if line.loss and not line.loss["who"]]
    return sorted(lines, key=lambda line: line.loss["open_loss_difference"] if line.loss else 0.0)


def _kept(visit: Visit) -> tuple[KeptViews, str]:
    """Returns what the project keeps, and why it cannot be read; the page does without it."""
    try:
        return kept_in(visit.bench.home), ""
    except UsageError as error:
        return KeptViews(), str(error)


def _keep(visit: Visit) -> Response:
    """Keeps or removes a view, or keeps columns; leads back to where that was asked."""
    home, (name, address, remove) = visit.bench.home, (visit.field(one) for one in ("name", "address", "remove"))
    if remove:
        forget_view(home, remove)
        address = "/"
    elif address:
        keep_view(home, name, address)
    else:
        keep_columns(home, [column for column in visit.form.get("show", []) if column in COLUMNS])
        address = "/"
    return RedirectResponse(address, 303)


PAGES = (Page("/", _respond), Page("/views", _keep, ("POST",)))
