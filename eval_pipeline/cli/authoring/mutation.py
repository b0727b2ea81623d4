"""The command `harden`, and the mutants of `validate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import Suites, open_workspace, suite_names
from eval_pipeline.cli.saying import say

if TYPE_CHECKING:
    from eval_pipeline.suites.headers import SuiteSource
    from eval_pipeline.tracks.scored.mutation_score import TurnMutants


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
