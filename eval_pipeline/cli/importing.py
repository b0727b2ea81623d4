"""`import`: a command a foreign data set, and one for predictions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from eval_pipeline.cli.options import open_workspace
from eval_pipeline.core.plugins import PluginError
from eval_pipeline.tracks.registry import ALL_IMPORTERS, ForeignForm


class Forms(TyperGroup):
    """The commands of `import`: one a form that is shipped or installed, beside those defined here.

    Packages are looked through when one of its commands is wanted, and not for the help of the whole.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        return [*super().list_commands(ctx), *ALL_IMPORTERS.names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; that of a form which cannot be used says so when it is run."""
        if cmd_name not in self.commands and cmd_name in ALL_IMPORTERS:
            return _command_of(cmd_name)
        return super().get_command(ctx, cmd_name)


import_app = typer.Typer(cls=Forms, help="Brings in data sets and predictions made elsewhere.", no_args_is_help=True)


@import_app.command("predictions")
def import_predictions(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL of predictions.")],
    suite: Annotated[str, typer.Option(help="The suite that was answered.")],
    model_version: Annotated[str, typer.Option(help="Name of the model version to register.")],
    priced_as: Annotated[str | None, typer.Option(metavar="MODEL", help="Model whose prices count.")] = None,
) -> None:
    """Registers recorded predictions as a model version."""
    from eval_pipeline.cli.terminal import ProgressBars, note
    from eval_pipeline.operations import importing
    from eval_pipeline.workspace.progress import busy

    with ProgressBars() as progress, busy(progress, f"importing {source.name}"):
        made = importing.import_predictions(open_workspace(), source, suite, model_version, priced_as)
    typer.echo(f"{made.predictions} predictions imported as model version '{made.model_version}'")
    if made.missing:
        shown = ", ".join(made.missing[:5]) + (" …" if len(made.missing) > 5 else "")
        turns = (
            "1 turn without a prediction counts"
            if len(made.missing) == 1
            else f"{len(made.missing):,} turns without a prediction count"
        )
        typer.echo(f"{turns} as no answer: {shown}")
    if made.priced_as and not made.has_price:
        note(f"note: the price table has no model '{made.priced_as}': dollars will be NULL")
    typer.echo(f"next: eval-pipeline run --suite {suite} --model-version {model_version}")


def _command_of(form: str) -> Any:
    """The command of a form; one that comes with further files has an option for them."""
    app = typer.Typer(add_completion=False)
    try:
        foreign = ALL_IMPORTERS.get(form)
    except PluginError as error:
        app.command(form, help=str(error))(_refusing(error))
    else:
        app.command(form, help=f"Imports a {form} data set as a suite of track {foreign.track}.")(
            _importing(form, foreign)
        )
    return get_command(app)


def _refusing(error: PluginError) -> Callable[[], None]:
    def refuse() -> None:
        raise error

    return refuse


def _importing(form: str, foreign: ForeignForm) -> Callable[..., None]:
    def import_data_set(
        source: Annotated[Path, typer.Argument(metavar="FILE", help="The data set's file or folder.")],
        suite: Annotated[str, typer.Option(help="Name of the suite to make.")],
        limit: Annotated[int | None, typer.Option(min=1, help="Only the first cases.")] = None,
    ) -> None:
        _import(form, source, suite, limit, ())

    def import_with_files(
        source: Annotated[Path, typer.Argument(metavar="FILE", help="The data set's file or folder.")],
        suite: Annotated[str, typer.Option(help="Name of the suite to make.")],
        further: Annotated[list[Path], typer.Option(f"--{foreign.further}", metavar="FILE", help=foreign.further_help)],
        limit: Annotated[int | None, typer.Option(min=1, help="Only the first cases.")] = None,
    ) -> None:
        _import(form, source, suite, limit, further)

    return import_with_files if foreign.further else import_data_set


def _import(form: str, source: Path, suite: str, limit: int | None, further: Sequence[Path]) -> None:
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.operations.importing import import_at_arms_length
    from eval_pipeline.workspace.progress import busy

    open_workspace()  # so that the home is there, and private
    with ProgressBars() as progress, busy(progress, f"importing {source.name}"):
        made = import_at_arms_length(form, source, suite, limit, further)
    typer.echo(f"{made.cases} cases with {made.turns} turns imported to {made.folder}")
    for sentence in made.wrong_gold:
        typer.echo(f"gold does not hold{', left out' if made.left_out else ''}: {sentence}")
    typer.echo(f"next: eval-pipeline run --suite {suite}")
