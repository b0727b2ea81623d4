"""The page with the turns of an evaluation, filtered and sorted. The address contains the filter."""

from starlette.responses import RedirectResponse, Response

from eval_pipeline.view.addresses import AFTER, BEFORE, turns_address
from eval_pipeline.view.evaluation import chosen_in_form, drawn, evaluation_at, evaluation_of, implausible, places_of
from eval_pipeline.view.filtering.filter import FLAKY, ONLY, OPERATORS, VERDICTS, Filter, filter_of
from eval_pipeline.view.filtering.found import choices, count, over_dates, page_of_turns, wanted_columns
from eval_pipeline.view.filtering.questions import questions
from eval_pipeline.view.filtering.sql import position_from, position_of, position_text, turns_sql
from eval_pipeline.view.page import Page, Visit


def _respond(visit: Visit) -> Response:
    if chosen := visit.argument("at"):
        there = evaluation_at(visit.look, chosen_in_form(visit, chosen))
        filtered = filter_of(visit.request.query_params, there.columns)
        return RedirectResponse(turns_address(there.partition, filtered.arguments), 303)
    evaluation = evaluation_of(visit)
    filtered = filter_of(visit.request.query_params, evaluation.columns)
    if not (visit.argument("model_version") and visit.argument("eval_date")):
        # The newest evaluation may be another one tomorrow; an address that is shared must stay the same.
        return RedirectResponse(turns_address(evaluation.partition, filtered.arguments), 303)
    backwards = bool(visit.argument(BEFORE))
    place = visit.argument(BEFORE) or visit.argument(AFTER)
    beyond = position_from(place) if place else None
    found = page_of_turns(visit.look, evaluation, filtered, beyond, backwards=backwards)
    here = filtered.arguments
    picks = choices(visit.look, evaluation)
    signs = implausible(visit.look, visit.suite).get(evaluation.partition, ())
    return visit.page(
        "turns.html.j2",
        f"Turns of {evaluation.partition.model_version} on {evaluation.partition.suite}",
        evaluation=evaluation,
        partition=evaluation.partition,
        filtered=filtered,
        arguments=here,
        turns=found,
        columns=[evaluation.columns[name] for name in wanted_columns(evaluation, filtered)],
        over_dates=over_dates(visit.look, evaluation, found.rows) if FLAKY in filtered.only else None,
        matching=count(visit.look, evaluation, filtered),
        total=count(visit.look, evaluation, Filter()),
        choices=picks,
        places=places_of(visit.look, visit.suite, evaluation.partition.model_version),
        questions=questions(visit.look, evaluation.partition),
        operators=OPERATORS,
        only={**picks.only, **{name: ONLY[name] for name in filtered.only}},
        verdicts=VERDICTS,
        earlier=here | {BEFORE: position_text(found.first)} if found.before and found.first else None,
        later=here | {AFTER: position_text(found.last)} if found.after and found.last else None,
        sql=turns_sql(evaluation, filtered, wanted_columns(evaluation, filtered)),
        position_of=position_of,
        odd=signs,
        drawn=drawn(visit.look, evaluation.partition),
    )


PAGES = (Page("/suites/{suite}/turns", _respond),)
