"""The application: its commands, and what becomes of errors and signals."""

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from eval_pipeline import __version__
from eval_pipeline.cli import inspecting, running
from eval_pipeline.cli.acknowledging import acknowledge
from eval_pipeline.cli.comparing import compare
from eval_pipeline.cli.demo import demo
from eval_pipeline.cli.exporting import export_app
from eval_pipeline.cli.importing import import_app
from eval_pipeline.cli.judging import rejudge
from eval_pipeline.cli.options import BAD_USAGE, FAILED, INTERRUPTED, OK
from eval_pipeline.cli.pruning import prune
from eval_pipeline.cli.removing import remove
from eval_pipeline.cli.rescoring import rescore
from eval_pipeline.cli.reviewing import reviews_app
from eval_pipeline.cli.sweeping import of_dagsters_storage
from eval_pipeline.cli.terminal import fail
from eval_pipeline.cli.viewing import view
from eval_pipeline.core.errors import EvalError

app = typer.Typer(
    help="Evaluates language models on data work: how good, how sure, and what a right answer costs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(running.run)
app.command()(running.plan)
app.add_typer(import_app, name="import")
app.add_typer(export_app, name="export")
app.command()(inspecting.validate)
app.command()(inspecting.publish)
app.command()(inspecting.report)
app.command()(inspecting.query)
app.command()(compare)
app.command()(rescore)
app.command()(acknowledge)
app.command()(rejudge)
app.add_typer(reviews_app, name="reviews")
app.command()(prune)
app.command()(remove)
app.command()(inspecting.doctor)
app.command()(running.dev)
app.command()(view)
app.command()(demo)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def run_command() -> NoReturn:
    """Runs the command of `sys.argv` and ends the process."""
    _leave(command_line())


def command_line() -> int:
    """Runs the command of `sys.argv` and gives its exit code.

    Errors that the user can mend are one sentence, a trace only with `--debug`.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        code = app(arguments, standalone_mode=False)
        if code == INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()  # here what goes wrong with it, such as a full disk, is still told
    except EvalError as error:
        code = _failed(str(error), debug, BAD_USAGE)
    except (KeyboardInterrupt, typer.Abort):
        code = _failed("interrupted; what was done is kept, the next run goes on from there", debug, INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has stopped (`| head`): not an error.
        sys.stderr.close()
        code = OK
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None:
            text = f"{type(error).__name__}: {error} (a fault of eval-pipeline; --debug shows where)"
            code = _failed(of_dagsters_storage(error) or text, debug, FAILED)
        else:
            show()
            code = BAD_USAGE
    return code or OK


def _leave(code: int) -> NoReturn:
    """Ends the process without taking the interpreter apart, which takes a sixth of a short run's CPU time.

    What was registered for the end is done first. A profiler, a debugger or a thread that is still at work has more to
    do after that: then the process ends as usual.
    """
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    if any(not thread.daemon for thread in others) or sys.getprofile() or sys.gettrace():
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            stream.flush()
    os._exit(code)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _failed(message: str, debug: bool, code: int) -> int:
    if debug:
        raise
    fail(message)
    return code
