"""The page that shows two to six evaluations of a suite side by side, regressions first."""

from dataclasses import replace

from starlette.responses import RedirectResponse, Response

from eval_pipeline.view.addresses import AFTER, BEFORE, TOLD, review_address, turn_address, turns_address
from eval_pipeline.view.comparing import agreement
from eval_pipeline.view.comparing.breakdown import by_tag, kinds
from eval_pipeline.view.comparing.found import left_out, order, tags, with_what_was_said
from eval_pipeline.view.comparing.paired import tests_of
from eval_pipeline.view.comparing.pictures import Common, pictures_of
from eval_pipeline.view.comparing.sides import (
    LEAST,
    LETTERS,
    MOST,
    address_arguments,
    choices,
    names_of_sides,
    other_parts,
    sides_address,
    sides_of,
    the_only_one,
)
from eval_pipeline.view.comparing.sql import Choice, choice_of, position_from, position_text
from eval_pipeline.view.evaluation import implausible
from eval_pipeline.view.overview.parts import mode_changes
from eval_pipeline.view.page import Page, Visit
from eval_pipeline.view.turn.parts import has_steps


def _respond(visit: Visit) -> Response:
    if (only := the_only_one(visit)) is not None:
        return RedirectResponse(turns_address(only), 303)
    sides = sides_of(visit)
    choice = choice_of(visit.request.query_params, len(sides))
    canonical = sides_address(sides)
    asked = {name: visit.request.query_params.getlist(name) for name in ("versions", "eval_dates", "evaluations")}
    if {name: said for name, said in asked.items() if said} != {n: [v] for n, v in address_arguments(sides).items()}:
        # The newest evaluation may be another one tomorrow; an address that is shared must stay the same.
        return RedirectResponse(sides_address(sides, choice.arguments), 303)
    everything = order(visit.look, sides, Choice())
    of_filter = order(visit.look, sides, replace(choice, group=""))
    turns = order(visit.look, sides, choice)
    backwards = bool(visit.argument(BEFORE))
    place = visit.argument(BEFORE) or visit.argument(AFTER)
    page = turns.page(position_from(place) if place else None, backwards=backwards)
    shown = with_what_was_said(visit.look, sides, page.rows)
    here = choice.arguments
    odd = implausible(visit.look, visit.suite)
    among = {**address_arguments(sides), **here}
    names = names_of_sides(visit.look, sides)
    changes = mode_changes(visit.look, *(side.partition for side in sides)) if len(sides) == LEAST else {}
    fail = kinds(visit.look, sides, everything, changes)
    others = other_parts(visit.look, sides)
    among_common = Common(len(everything), fail, changes, lambda kind: f"{sides_address(sides, {'kind': kind})}#turns")
    drawn = pictures_of(visit.look, sides, names, others, among_common)
    return visit.page(
        "compare.html.j2",
        f"{' and '.join(names)} on {visit.suite}",
        names=names,
        drawn=list(drawn),
        choices=choices(visit.look, sides[0]),
        hidden=address_arguments(sides),
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
        has_steps=has_steps(sides[0]),
        other_parts=others,
        odd=[odd.get(side.partition, ()) for side in sides],
        matching=len(turns),
        left_out=left_out(visit.look, sides),
        tests=tests_of(visit, sides, names),
        tags=tags(visit.look, sides),
        turns=shown,
        turn_of=lambda side, turn: turn_address(side.partition, turn.turn_id, turn.place.sample, among),
        review_of=lambda side, turn: review_address(
            side.partition, turn.turn_id, turn.place.sample, {**among, TOLD: "1"}
        ),
        kinds=kinds(visit.look, sides, order(visit.look, sides, replace(choice, kind="")), changes),
        changes=changes,
        by_tag=by_tag(visit.look, sides, choice),
        sql=turns.sql,
        canonical=canonical,
        turned=sides_address(list(reversed(sides)), {name: here[name] for name in ("tag", "q", "kind")}),
        own_address=lambda **more: sides_address(sides, here | more),
        earlier=sides_address(sides, here | {BEFORE: position_text(shown[0].place)}) if page.before and shown else None,
        later=sides_address(sides, here | {AFTER: position_text(shown[-1].place)}) if page.after and shown else None,
    )


PAGES = (Page("/suites/{suite}/compare", _respond),)
