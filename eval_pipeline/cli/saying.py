"""Writes lines to the standard output: exact into files and pipes, harmless on a terminal."""

import sys

import typer

from eval_pipeline.core.shown import visible_text


def say(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Writes a text; on a terminal, characters that control it or change the direction of writing are escapes."""
    stream = sys.stderr if err else sys.stdout
    typer.echo(visible_text(text) if stream.isatty() else text, nl=nl, err=err, color=True)
