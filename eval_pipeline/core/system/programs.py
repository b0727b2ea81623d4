"""Somebody's own program that works on tasks by itself, as a model version names it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_pipeline.core.values import value

AGENT = "/agent"
"""Where a program finds its own folder."""
TOOLS_PATH = "/eval/tools"
"""Path at the address of its models where a program finds the tools of its task."""
CRASHED: Final = "crashed"
"""How an attempt has ended whose program failed, or ended at once and had done nothing."""


@value
class OwnProgram:
    """A program that is run in a world, once for each attempt.

    Attributes:
        command: the program with its arguments.
        environment: settings that it finds in its environment.
        folder: its own files, which it finds in `AGENT`; None without.
        shown: further files and folders that it sees at their own places.
        first: folders in which programs are looked for first.
        own_packages: whether its Python has packages of its own, not those that are installed here.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path | None = None
    shown: Sequence[Path] = ()
    first: Sequence[Path] = ()
    own_packages: bool = False


@value
class ProgramEnded:
    """How a program has ended.

    Attributes:
        status: as `subprocess` has it.
        stopped: what it used too much of (`wall`, `memory`, `threads`); None if it ended by itself.
        output, errors: the end of what it wrote to standard output and standard error.
        answer: what it wrote to the file of its answer; None without one.
    """

    status: int
    stopped: str | None
    output: str
    errors: str
    answer: str | None
