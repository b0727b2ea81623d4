"""Commands for who writes suites: `init`, `suite …`, `harden` and `rejudge`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import FAILED, Suites, open_workspace, suite_names
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError

if TYPE_CHECKING:
    from eval_pipeline.operations.suite_work.suite_items import SuiteItems
    from eval_pipeline.statistics.items import Item
    from eval_pipeline.suites.headers import SuiteSource
    from eval_pipeline.tracks.scored.mutation_score import TurnMutants


suite_app = typer.Typer(help="Shows what is known about a suite, and serves its tasks.", no_args_is_help=True)
_LISTED = 10
_WORDS = {
    "tells apart": "tell model versions apart",
    "all right": "were right in every evaluation",
    "all wrong": "were wrong in every evaluation",
    "suspicious": "are suspicious: weaker model versions are right, better ones wrong; look at their gold",
    "too little history": "have too few evaluations to say",
}


@suite_app.command("report")
def report(
    suite: Suites = None,
    to_csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write every turn to a CSV file.")
    ] = None,
) -> None:
    """Shows which turns tell model versions apart, how difficult they are, and which look suspicious."""
    from eval_pipeline.operations.suite_work.suite_items import suite_items

    workspace = open_workspace()
    found = [suite_items(workspace, name) for name in suite_names(workspace, suite)]
    for one in found:
        for line in _lines(one):
            say(line)
    if to_csv is not None:
        _write(to_csv, found)
        say(f"{to_csv}: {shown.turns(sum(len(one.turns) for one in found))}")


@suite_app.command("serve")
def serve(
    suite: Annotated[str, typer.Argument(help="Suite, of a track with tools.")],
    case: Annotated[str, typer.Argument(help="Id of the case.")],
    output: Annotated[
        Path | None, typer.Option(help="Append the attempt to a file that `import predictions` reads.")
    ] = None,
) -> None:
    """Serves a task's tools to any agent, by MCP on standard input and output; tells in the end whether it is right."""
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.operations.suite_work.serving import ServedTask, row_text, served_case
    from eval_pipeline.operations.suite_work.serving import serve as serve_case

    def ended(task: ServedTask) -> None:
        if output is not None:
            with output.open("a", encoding="utf-8") as file:
                file.write(row_text(task))
        note(task.verdict)

    serve_case(*served_case(open_workspace().suite(suite), case), ended)


def _lines(found: "SuiteItems") -> Iterator[str]:
    versions = shown.counted(len(found.evaluations), "model version", "model versions")
    yield f"{found.suite} · {shown.turns(len(found.turns))}, {versions}"
    for kind, words in _WORDS.items():
        turns = [(turn, item) for turn, item in zip(found.turns, found.items, strict=True) if item.kind == kind]
        if not turns:
            continue
        yield f"  {len(turns)} {words}"
        if kind in ("suspicious", "all wrong"):
            listed = sorted(turns, key=lambda pair: pair[1].discrimination or 0.0)[:_LISTED]
            yield from (f"    {turn}{_figures(item)}" for turn, item in listed)
            if len(turns) > _LISTED:
                yield f"    and {len(turns) - _LISTED} more"


def _figures(item: "Item") -> str:
    return "" if item.discrimination is None else f" (discrimination {shown.signed(item.discrimination, 'score')})"


def _write(path: Path, found: "list[SuiteItems]") -> None:
    import csv

    from eval_pipeline.reports.files.csv_cells import harmless_text

    columns = ("suite", "turn_id", "kind", "evaluations", "difficulty", "discrimination", "p_value")
    rows: list[tuple[object, ...]] = [
        (one.suite, turn, item.kind, item.evaluations, item.difficulty, item.discrimination, item.p_value)
        for one in found
        for turn, item in zip(one.turns, one.items, strict=True)
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([harmless_text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def rejudge(
    suite: Annotated[str, typer.Option(help="Suite whose judge to ask.")],
    model_version: Annotated[str, typer.Option(help="Model version whose newest evaluation is judged again.")],
    repeats: Annotated[int, typer.Option(min=2, max=20, help="How often each question is asked.")] = 3,
    pairs: Annotated[
        int, typer.Option(min=1, help="The most pairs to ask about; the random draw is the same each time.")
    ] = 50,
) -> None:
    """Asks the judge the same questions several times and reports how often it contradicts itself.

    Every question costs.

    The total is limited by `max_cost_usd` and `max_tokens_total` of the judging model version, and EVAL_MAX_COST_USD.
    """
    from eval_pipeline.analysis.baseline import newest_partition
    from eval_pipeline.chain.wholeness import gate
    from eval_pipeline.cli.terminal import fail, note
    from eval_pipeline.core.covering.cost_limit import MAX_COST, command_limit
    from eval_pipeline.stages.judged.judge_repeats import repeat_judging
    from eval_pipeline.stages.publishing import publish_keys
    from eval_pipeline.store.keys import RecordKey
    from eval_pipeline.workspace.inputs import Inputs
    from eval_pipeline.workspace.runs import RunContext

    workspace = open_workspace()
    name = workspace.suite(suite).name
    partition = newest_partition(workspace, name, workspace.model_version(model_version).name)
    if partition is None:
        raise UsageError(f"'{model_version}' has no evaluation of '{name}'; `eval-pipeline run` makes one")
    found = repeat_judging(Inputs.of(workspace, partition, run=RunContext(cost_limit=command_limit())), repeats, pairs)
    publish_keys(workspace, [RecordKey.of(partition)], gate(workspace))
    said = found.agreement
    say(f"{name} · {model_version} · {partition.eval_date}: {found.judge}, asked {repeats} times")
    say(f"  pairs          {said.n:,}, {said.unanimous:,} of them with one answer every time")
    if said.agreement is not None:
        told = shown.estimate(said.agreement, said.low, said.high, "score")
        say(f"  self-agreement {told} (two answers to the same question are the same)")
    say(f"  Fleiss' kappa  {shown.score(said.kappa)}{f' ({said.reason})' if said.reason else ''}")
    if found.failures:
        note(f"{shown.counted(found.failures, 'answer', 'answers')} did not come; their pairs are not counted")
    if found.budget_reached:
        fail(f"the budget of the judge is reached (max_cost_usd, max_tokens_total of its model version, or {MAX_COST})")
        raise typer.Exit(FAILED)


def report_mutants(source: "SuiteSource") -> None:
    """Prints the mutation score of a suite, and each mutant that gives the same results as the gold."""
    from eval_pipeline.operations.suite_work.mutation import equivalent_mutants, score_lines

    turns = _turns(source)
    for line in score_lines(source.name, turns, equivalent_mutants(source.folder, source.name)):
        say(line)


def harden(
    suite: Suites = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the proposals; default: `hardening` in the home.")
    ] = None,
) -> None:
    """Writes table rows that tell the gold of a suite from mutants of it, as proposals for people to add."""
    import yaml

    from eval_pipeline.operations.suite_work.mutation import equivalent_mutants, proposals

    workspace = open_workspace()
    folder = out or workspace.home.root / "hardening"
    for name in suite_names(workspace, suite):
        source = workspace.suite(name)
        found = proposals(_turns(source), equivalent_mutants(source.folder, name))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
        say(f"{path}: {len(found)} proposals")


def _turns(source: "SuiteSource") -> "Sequence[TurnMutants]":
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.operations.suite_work.mutation import suite_mutants
    from eval_pipeline.suites.cases import read_suite
    from eval_pipeline.workspace.progress import counted

    with ProgressBars() as progress:
        cases = read_suite(source).cases
        return [*suite_mutants(source.track(), counted(progress, f"{source.name} · mutants", cases, 0))]


TOLD = 5
"""How many files that already existed are listed by name."""


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the project; created if missing.")],
    sample: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE", help="Sample suite to copy; repeat it for several; default: tickets_sample."),
    ] = None,
) -> None:
    """Creates a project: a sample suite, model versions, a README and a CI workflow. Existing files are not changed."""
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.operations.project import make_project

    made = make_project(folder, sample or ())
    for path in made.kept[:TOLD]:
        note(f"{folder / path} is there already and was not changed")
    if len(made.kept) > TOLD:
        note(f"and so with {shown.counted(len(made.kept) - TOLD, 'more file', 'more files')}")
    say(f"{folder}: {shown.counted(len(made.written), 'file', 'files')} written, {len(made.kept)} left as they were")
    for sentence in made.left:
        note(sentence)
    say(f"next: cd {folder} && eval-pipeline demo")
