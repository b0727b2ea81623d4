"""The command `reviews`: reviews of answers by people, queues of answers to review, and proposals for the gold."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.options import EvalDate, Suites, open_workspace, parse_day, suite_names
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.shown import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eval_pipeline.analysis.reviews.making import Reviewed
    from eval_pipeline.workspace.inputs import Inputs

reviews_app = typer.Typer(help="Reviews by people: how many, how they agree, and what follows.")
Suite = Annotated[str, typer.Option(help="The suite.")]
_COLUMNS = ("suite", "queue", "model_version", "figure", "label", "value", "low", "high", "n", "reason")


@reviews_app.callback(invoke_without_command=True)
def reviews(
    context: typer.Context,
    suite: Suites = None,
    format: Annotated[str, typer.Option(help="table, csv or json.")] = "table",
) -> None:
    """Reports how many reviews there are and their results; also updates the table `reviews` in the store."""
    if context.invoked_subcommand is not None:
        return
    from eval_pipeline.cli.terminal import print_rows
    from eval_pipeline.operations.reviews.reviewing import keep_reviews

    if format not in {"table", "csv", "json"}:
        raise UsageError(f"unknown format '{format}'; one of: table, csv, json")
    found: list[dict[str, Any]] = []
    for inputs in _inputs(suite):
        reviewed = _reviewed(inputs)
        if suite is None and not reviewed.reviews and not reviewed.queues:
            continue
        rows = keep_reviews(inputs)
        found += rows
        if format == "table":
            _tell(inputs, reviewed, rows)
    if format != "table":
        print_rows(list(_COLUMNS), [[row[name] for name in _COLUMNS] for row in found], format)


@reviews_app.command()
def queue(
    suite: Suite,
    size: Annotated[int, typer.Option(min=1, help="Answers to draw.")] = 50,
    by: Annotated[
        str,
        typer.Option(
            help="uniform; disagreement: more answers on which judge, metrics or models disagree; narrowest: more of "
            "those on which, by the reviews so far, the metric errs most, for the narrowest corrected accuracy."
        ),
    ] = "disagreement",
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    model_version: Annotated[
        list[str] | None,
        typer.Option("--model-version", help="Model version; repeat it for several; default: all real ones."),
    ] = None,
) -> None:
    """Draws answers for people to review, with known probabilities, and stores the queue next to the suite."""
    from eval_pipeline.analysis.reviews.drawing import WAYS
    from eval_pipeline.operations.reviews.reviewing import draw_queue
    from eval_pipeline.reports.places.links import linked, reviews_path

    if by not in WAYS:
        raise UsageError(f"unknown way to draw '{by}'; one of: {', '.join(WAYS)}")
    (inputs,) = _inputs([suite])
    made = draw_queue(inputs, model_version, by, size, seed)
    answers = shown.counted(len(made.items), "answer", "answers")
    say(f"{inputs.suite}: queue {made.id}, {answers} drawn by {by}, seed {seed}")
    width = max(28, *map(len, made.strata))
    for name, stratum in made.strata.items():
        say(f"  {name:<{width}} {stratum.drawn:>5} of {stratum.population:,}")
    say(f"Review them with `eval-pipeline view`, at {linked(reviews_path(inputs.suite))}")


@reviews_app.command()
def add(
    suite: Suite,
    turn: Annotated[str, typer.Option(help="<case>#<index>, counted from 0, or the turn's public id.")],
    model_version: Annotated[str, typer.Option(help="Whose answer it is.")],
    verdict: Annotated[str, typer.Option(help="right, wrong or cannot_tell.")],
    eval_date: EvalDate = None,
    sample: Annotated[int, typer.Option(min=0, help="Which of several samples.")] = 0,
    who: Annotated[str | None, typer.Option(help="The reviewer; default: you.")] = None,
    gold_wrong: Annotated[bool, typer.Option("--gold-wrong", help="The gold of the turn is wrong.")] = False,
    correction: Annotated[
        str | None, typer.Option(help="Fields of the gold that would be right, as a JSON object; with --gold-wrong.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="How the answer fails, in one word.")] = None,
    note: Annotated[str, typer.Option(help="Anything else.")] = "",
    queue: Annotated[str | None, typer.Option(help="Id of the queue with this answer.")] = None,
) -> None:
    """Adds a review of an answer (for scripts); without a date, it is for the newest evaluation."""
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.reviews.reviewing import (
        ReviewStatement,
        answer_on_record,
        correction_from,
        evaluation_to_review,
        gold_hash_of,
        own_name,
        review_answer,
    )

    (inputs,) = _inputs([suite])
    day = parse_day(eval_date) if eval_date else None
    newest = evaluation_to_review(inputs, model_version)
    place = Partition(inputs.suite, model_version, day) if day else newest
    item = answer_on_record(inputs.anew(partition=place), turn, sample)
    told = (
        gold_wrong,
        correction_from(correction, "--correction"),
        tag,
        note,
        queue,
        gold_hash_of(inputs, item.turn_id),
    )
    said = ReviewStatement(who or own_name(), verdict, *told)
    made = review_answer(inputs, item, said)
    say(f"{made.id}: {made.who} calls {made.model_version} on {made.turn_id} {made.verdict}")


@reviews_app.command()
def disputes(suite: Suites = None) -> None:
    """Lists the answers on which reviewers disagree."""
    from eval_pipeline.operations.reviews.reviewing import disputed

    for inputs in _inputs(suite):
        for found in disputed(_reviewed(inputs)):
            said = ", ".join(f"{one.who}: {one.verdict}{' (gold wrong)' * one.gold_wrong}" for one in found)
            say(f"{found[0].turn_id} · {found[0].model_version} · {said}")


@reviews_app.command()
def propose(
    suite: Suite,
    write: Annotated[
        bool, typer.Option("--write", help="Put the entries into the suite's gold_overrides.yaml.")
    ] = False,
) -> None:
    """Prints what reviews propose for `gold_overrides.yaml`; only that file changes figures, and no model is asked."""
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.operations.reviews.proposing import proposals, write_proposals

    (inputs,) = _inputs([suite])
    source = inputs.workspace.suite(inputs.suite)
    found = proposals(inputs, _reviewed(inputs))
    for turn, why in found.left.items():
        note(f"{turn}: not proposed: {why}")
    if not found.entries:
        note(f"{inputs.suite}: no review proposes to change the gold")
    elif write:
        path = write_proposals(source, found)
        say(f"{path}: {len(found.entries)} added; `eval-pipeline rescore --suite {inputs.suite}` scores by it")
    else:
        say(found.text(), nl=False)


def _inputs(suites: list[str] | None) -> "list[Inputs]":
    from eval_pipeline.workspace.inputs import Inputs

    workspace = open_workspace()
    return [Inputs(workspace, name) for name in suite_names(workspace, suites)]


def _reviewed(inputs: "Inputs") -> "Reviewed":
    """Returns the reviews stored next to the suite, and reports any problems with them."""
    from eval_pipeline.analysis.reviews.making import reviewed_of
    from eval_pipeline.cli.terminal import fail

    found = reviewed_of(inputs)
    for problem in found.problems:
        fail(str(problem))
    return found


def _tell(inputs: "Inputs", reviewed: "Reviewed", rows: "Sequence[Mapping[str, Any]]") -> None:
    from eval_pipeline.analysis.reviews.corrected import corrected_figure, headline_rater
    from eval_pipeline.operations.reviews.reviewing import disputed, progress_of

    counting, odds = reviewed.current, len(disputed(reviewed))
    people, answers = {one.who for one in counting}, {one.answer for one in counting}
    of = f"{shown.counted(len(counting), 'review', 'reviews')} of {shown.counted(len(answers), 'answer', 'answers')}"
    told = f"{of}, reviewers: {len(people):,}, disputed: {odds:,}"
    say(f"{inputs.suite}: {told}")
    for found in progress_of(reviewed):
        own = found.queue
        far = f"{len(found.reviewed):,} of {len(own.items):,} reviewed"
        say(f"\nqueue {own.id}, {own.at:%Y-%m-%d}, by {own.by}: {far}")
        of_queue = [row for row in rows if row["queue"] == own.id]
        _tell_corrected(of_queue, corrected_figure(headline_rater(own)))
        _tell_figures(of_queue)
    if looked_at := [row for row in rows if row["queue"] is None]:
        say("\nof the answers looked at, which nobody drew:")
        _tell_figures(looked_at)


def _tell_corrected(rows: "Sequence[Mapping[str, Any]]", figure: str) -> None:
    """Prints the accuracy as reviewers would say, of each model version and of all."""
    for row in rows:
        if row["figure"] == figure and row["value"] is not None:
            why = f" ({row['reason']})" if row["low"] is None else ""
            share = shown.estimate(row["value"], row["low"], row["high"])
            told = f"accuracy as reviewers would say, {share}{why}, from {shown.counted(row['n'], 'review', 'reviews')}"
            say(f"  {row['model_version'] or 'all'}: {told}")


def _tell_figures(rows: "Sequence[Mapping[str, Any]]") -> None:
    from eval_pipeline.analysis.reviews.figures import unborne

    before = ""
    for row in rows:
        if row["value"] is None:
            continue
        version = row["model_version"] or "all"
        unit: Unit = "score" if row["figure"].endswith("kappa") else "rate"
        ends = row["reason"] if row["low"] is None else f"[{shown.interval(row['low'], row['high'], unit)}]"
        name = row["figure"].replace("_", " ") + (f": {row['label']}" if row["label"] else "")
        value = shown.figure(row["value"], unit, row["low"], row["high"])
        named = "" if version == before else version
        say(f"  {named:<18.18} {name:<32.32} {value:>7} of {row['n']:<4,} {ends}")
        before = version
    for sentence in unborne(rows):
        say(f"  {sentence}")
