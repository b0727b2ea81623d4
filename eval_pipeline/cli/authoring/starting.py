"""The command `init`: creates a new project."""

from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown

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
    from eval_pipeline.operations.project.making import make_project

    made = make_project(folder, sample or ())
    for path in made.kept[:TOLD]:
        note(f"{folder / path} is there already and was not changed")
    if len(made.kept) > TOLD:
        note(f"and so with {shown.counted(len(made.kept) - TOLD, 'more file', 'more files')}")
    say(f"{folder}: {shown.counted(len(made.written), 'file', 'files')} written, {len(made.kept)} left as they were")
    for sentence in made.left:
        note(sentence)
    say(f"next: cd {folder} && eval-pipeline demo")
