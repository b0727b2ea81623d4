"""The application: its commands, and how it handles errors and signals."""

import atexit
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from eval_pipeline import __version__
from eval_pipeline.cli.added import Added, Made, command_of
from eval_pipeline.cli.options import BAD_USAGE, FAILED, INTERRUPTED, OK, check_utf8
from eval_pipeline.cli.saying import say
from eval_pipeline.core.errors import EndedEarlyError, EvalError

if TYPE_CHECKING:
    from eval_pipeline.core.installed.plugins import Registry


COMMANDS = {
    "init": "authoring.suites:init",
    "run": "evaluating.running:run",
    "plan": "evaluating.running:plan",
    "validate": "looking.inspecting:validate",
    "harden": "authoring.suites:harden",
    "publish": "looking.inspecting:publish",
    "report": "looking.inspecting:report",
    "query": "looking.inspecting:query",
    "compare": "looking.comparing:compare",
    "candidates": "authoring.candidates:candidates",
    "rescore": "evaluating.rescoring:rescore",
    "acknowledge": "tending:acknowledge",
    "rejudge": "authoring.suites:rejudge",
    "prune": "tending:prune",
    "remove": "tending:remove",
    "doctor": "looking.inspecting:doctor",
    "dev": "evaluating.running:dev",
    "view": "looking.viewing:view",
    "demo": "evaluating.demo:demo",
    "import": "authoring.importing:import_app",
    "export": "looking.viewing:export_app",
    "reviews": "authoring.reviewing:reviews_app",
    "suite": "authoring.suites:suite_app",
    "packages": "tending:packages_app",
}
"""Our commands, in the order of the help: the place of the function or group, which only its use imports."""


class Commands(Added):
    """All commands: ours, and those of plug-ins."""

    def kinds(self) -> "Iterator[tuple[Registry[Any], Callable[[str, Any], Made]]]":
        """Yields the registry of commands."""
        from eval_pipeline.operations.added_commands import ALL_COMMANDS

        yield ALL_COMMANDS, lambda _, command: (None, command)

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all commands, ours first."""
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns the command of that name; None for an unknown one."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(f"eval_pipeline.cli.{module}"), name)
        return command_of(cmd_name, found)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command that the arguments begin with; typer, which knows none of ours, suggests no other."""
        if self.get_command(ctx, args[0]) is None and (near := get_close_matches(args[0], self.list_commands(ctx))):
            ctx.fail(f"No such command '{args[0]}'. Did you mean {', '.join(map(repr, near))}?")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    help="Evaluates language models on data tasks: how accurate, how certain, and the cost of a right answer.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if version:
        say(__version__)
        raise typer.Exit


_FAULT = "(a fault of {}; --debug shows where)"


def run_command() -> NoReturn:
    """Runs the command in `sys.argv` and ends the process."""
    _leave(command_line())


def _colour_no_files() -> None:
    """Keeps typer from colouring help in files and pipes where the environment has FORCE_COLOR, as on CI servers."""
    if not sys.stdout.isatty():
        os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"


def command_line() -> int:
    """Runs the command in `sys.argv` and returns its exit code.

    Errors that the user can fix are shown as one sentence; `--debug` adds the traceback.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
    output = _output()
    try:
        check_utf8(arguments)
        _colour_no_files()
        code = app(arguments, standalone_mode=False)
        if code == INTERRUPTED:  # typer turns Ctrl-C into this code
            raise KeyboardInterrupt
        sys.stdout.flush()  # flushed here so that a problem, such as a full disk, is still reported
    except EvalError as error:
        code = _failed(str(error), debug, INTERRUPTED if isinstance(error, EndedEarlyError) else BAD_USAGE)
    except (KeyboardInterrupt, typer.Abort):
        code = _failed("interrupted; what was done is kept, the next run goes on from there", debug, INTERRUPTED)
    except SystemExit as ended:  # typer ends so on any broken pipe, without a word
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        # Rich, which writes the help, then has replaced the output by nothing.
        code = (
            OK
            if _nobody_reads_on() or _output() != output
            else _failed(f"{ended.__context__!r} {_FAULT.format('eval-pipeline')}", debug, FAILED)
        )
    except Exception as error:
        show = getattr(error, "show", None)
        if isinstance(error, BrokenPipeError) and _nobody_reads_on():
            code = OK
        elif show is None:
            from eval_pipeline.cli.evaluating.sweeping import of_dagsters_storage
            from eval_pipeline.core.installed.plugins import at_fault

            text = f"{type(error).__name__}: {error} {_FAULT.format(at_fault(error))}"
            code = _failed(of_dagsters_storage(error) or text, debug, FAILED)
        else:
            show()
            code = BAD_USAGE
    return code or OK


def _leave(code: int) -> NoReturn:
    """Ends the process without shutting down the interpreter, which takes a sixth of a short run's CPU time.

    Functions registered with `atexit` run first. If a profiler, a debugger or another thread is active, the process
    ends in the usual way, because they still have work to do.
    """
    if _nobody_reads_on():  # what is still to be flushed goes nowhere, without a message about it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    if any(not thread.daemon for thread in others) or sys.getprofile() or sys.gettrace():
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads the output any more, or it is closed
            stream.flush()
    os._exit(code)


def _output() -> tuple[int, int] | None:
    """Which file the output is; None if it is none, as in a notebook."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _nobody_reads_on() -> bool:
    """Whether the reader of the output has stopped (as with `| head`), which is not an error.

    The pipe that broke may also be one to a process that eval-pipeline started, and that is an error.
    """
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file, as in a notebook
        return False
    poll = select.poll()
    poll.register(output, 0)  # POLLERR and POLLHUP are always reported
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _failed(message: str, debug: bool, code: int) -> int:
    from eval_pipeline.cli.terminal import fail

    if debug:
        raise
    fail(message)
    return code
