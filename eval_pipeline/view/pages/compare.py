"""Side by side: two to six evaluations of a suite, regressions first."""

from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from eval_pipeline.view.comparing import agreement
from eval_pipeline.view.comparing.found import left_out, order, tags, with_what_was_said
from eval_pipeline.view.comparing.kinds import kinds
from eval_pipeline.view.comparing.paired import tests_of
from eval_pipeline.view.comparing.sides import LETTERS, MOST, sides_address, sides_of
from eval_pipeline.view.comparing.sql import Choice, choice_of, position_from, position_text
from eval_pipeline.view.evaluation import Evaluation
from eval_pipeline.view.page import Page, Visit
from eval_pipeline.view.pages.turns import AFTER, BEFORE


def _respond(visit: Visit) -> Response:
    sides = sides_of(visit)
    choice = choice_of(visit.request.query_params, len(sides))
    canonical = sides_address(sides)
    asked = [visit.request.query_params.getlist(name) for name in ("versions", "eval_dates")]
    wanted = [[",".join(names)] for names in zip(*(_named(side) for side in sides), strict=True)]
    if asked != wanted:
        # What is newest is another evaluation tomorrow; an address that is sent on has to stay.
        return RedirectResponse(sides_address(sides, choice.arguments), 303)
    everything = order(visit.look, sides, Choice())
    of_filter = order(visit.look, sides, replace(choice, group=""))
    turns = order(visit.look, sides, choice)
    backwards = bool(visit.argument(BEFORE))
    place = visit.argument(BEFORE) or visit.argument(AFTER)
    page = turns.page(position_from(place) if place else None, backwards=backwards)
    shown = with_what_was_said(visit.look, sides, page.rows)
    here = choice.arguments
    return visit.page(
        "compare.html.j2",
        " and ".join(side.partition.model_version for side in sides) + f" on {visit.suite}",
        sides=sides,
        letters=LETTERS,
        most=MOST,
        choice=choice,
        arguments=here,
        groups=of_filter.groups,
        regressions=sum(group.turns for group in of_filter.groups if agreement.is_regression(group.code)),
        regressions_code=agreement.REGRESSIONS,
        words=agreement.words,
        common=len(everything),
        matching=len(turns),
        left_out=left_out(visit.look, sides),
        tests=tests_of(visit, sides),
        tags=tags(visit.look, sides),
        turns=shown,
        kinds=[kinds(visit.look, side, turns) for side in sides],
        sql=turns.sql,
        canonical=canonical,
        turned=sides_address(list(reversed(sides)), {name: here[name] for name in ("tag", "q")}),
        own_address=lambda **more: sides_address(sides, here | more),
        earlier=sides_address(sides, here | {BEFORE: position_text(shown[0].place)}) if page.before and shown else None,
        later=sides_address(sides, here | {AFTER: position_text(shown[-1].place)}) if page.after and shown else None,
    )


def _named(side: Evaluation) -> tuple[str, str]:
    return side.partition.model_version, side.partition.eval_date.isoformat()


PAGES = (Page("/suites/{suite}/compare", _respond),)
