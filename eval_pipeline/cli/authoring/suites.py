"""The commands `suite …`: what is known about a suite, and its tasks served to agents."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import Suites, open_workspace, suite_names
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown

if TYPE_CHECKING:
    from eval_pipeline.operations.suite_work.suite_items import SuiteItems
    from eval_pipeline.statistics.items import Item

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
