"""The command `candidates`: writes the candidates of each turn of a suite of the track sdmx to a file."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from eval_pipeline.cli.options import FAILED, OK, open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown

_TIMEOUT_S = 600


def candidates(
    suite: Annotated[str, typer.Option(help="A suite of the track sdmx.")],
    command: Annotated[
        str | None,
        typer.Option(help="Program that gives the candidates, with its arguments; default: the track's own search."),
    ] = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds that the program may take for all turns.")] = _TIMEOUT_S,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; default: standard output.")
    ] = None,
) -> None:
    """Writes the candidates of each turn of a suite of the track sdmx, for the suite's option `candidates_file`.

    The program gets JSON lines with the turns on standard input, and writes lines with their candidates.
    """
    from eval_pipeline.cli.terminal import ProgressBars, fail, note
    from eval_pipeline.operations.suite_work.candidates import suite_candidates
    from eval_pipeline.workspace.progress import busy

    source = open_workspace().suite(suite)
    with ProgressBars() as progress, busy(progress, f"{suite} · candidates"):
        found = suite_candidates(source, command, timeout)
    for problem in found.problems:
        fail(f"{problem}; the case is left out")
    text = "".join(f"{line}\n" for line in found.lines)
    if output is None:
        say(text, nl=False)
    else:
        _write(output, text)
        note(f"{suite}: candidates of {shown.turns(len(found.lines))} written to {output}")
    raise typer.Exit(FAILED if found.problems else OK)


def _write(path: Path, text: str) -> None:
    from eval_pipeline.store.durable import make_folders, replace_durably, temporary_path, write_error

    temporary = temporary_path(path)
    try:
        make_folders(path.parent)
        temporary.write_text(text, encoding="utf-8")
        replace_durably(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise write_error(path, error) from None
