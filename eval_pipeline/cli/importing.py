"""`import`: a command a foreign data set, one for predictions, and one a form of other tools' logs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from eval_pipeline.cli.options import open_workspace
from eval_pipeline.core.plugins import PluginError
from eval_pipeline.operations.recorded.forms import LOGS
from eval_pipeline.tracks.registry import ALL_IMPORTERS, ForeignForm

if TYPE_CHECKING:
    from eval_pipeline.core.provenance import Provenance
    from eval_pipeline.operations.recorded.importing import ImportedPredictions


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


Source = Annotated[Path, typer.Argument(metavar="FILE", help="The file.")]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS", help="Their field that is ours: case_id=record_id. Several allowed."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="FIELD", help="A field to leave out; '*': all that are not ours."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="FIELD=VALUE", help="Only such answers, e.g. model=gpt-5. Several allowed."),
]
Sampling = Annotated[
    list[str] | None,
    typer.Option("--sampling", metavar="NAME=VALUE", help="What it was asked with: temperature=0. Several allowed."),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price", metavar="KIND=USD", help="Dollars per million tokens: input=3, output=15. Several allowed."
    ),
]


def _importing_answers(form: str) -> Callable[..., None]:
    def import_answers(
        source: Source,
        suite: Annotated[str, typer.Option(help="The suite that was answered.")],
        model_version: Annotated[str, typer.Option(help="Name of the model version to register.")],
        map: Map = None,
        ignore: Ignore = None,
        only: Only = None,
        model: Annotated[str | None, typer.Option(help="The real model that answered.")] = None,
        prompt_version: Annotated[str | None, typer.Option(help="Name of the prompt that it was shown.")] = None,
        prompt_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Text of that prompt.")] = None,
        history: Annotated[
            str | None, typer.Option(help="Answers to earlier turns that it was shown: gold, own, none, or in words.")
        ] = None,
        sampling: Sampling = None,
        asked_on: Annotated[str | None, typer.Option(metavar="DATE", help="Day on which it answered.")] = None,
        tool: Annotated[str | None, typer.Option(help="What asked it, e.g. 'our notebook'.")] = None,
        price: Prices = None,
        priced_as: Annotated[str | None, typer.Option(metavar="MODEL", help="Model whose prices count.")] = None,
    ) -> None:
        told = {"model": model, "prompt_version": prompt_version, "history": history, "tool": tool}
        of_all = told | {"asked_on": asked_on, "sampling": sampling, "prompt_file": prompt_file}
        _import_answers(
            form, source, suite, model_version, (map or (), ignore or (), only or ()), of_all, price, priced_as
        )

    return import_answers


COMMANDS = {"predictions": "recorded predictions (JSON lines)"} | {name: form.what for name, form in LOGS.items()}
for _form, _what in COMMANDS.items():
    import_app.command(_form, help=f"Registers the answers in {_what} as a model version.")(_importing_answers(_form))


def _import_answers(
    form: str,
    source: Path,
    suite: str,
    model_version: str,
    fields: tuple[Sequence[str], Sequence[str], Sequence[str]],
    of_all: Mapping[str, Any],
    price: Sequence[str] | None,
    priced_as: str | None,
) -> None:
    from eval_pipeline.cli.terminal import ProgressBars, note
    from eval_pipeline.operations.recorded.importing import import_predictions
    from eval_pipeline.operations.recorded.wanted import Wanted
    from eval_pipeline.workspace.progress import busy

    wanted = Wanted.of(form, *fields, of_all, price, priced_as)
    with ProgressBars() as progress, busy(progress, f"importing {source.name}"):
        made = import_predictions(open_workspace(), source, suite, model_version, wanted)
    typer.echo(f"{made.predictions:,} predictions imported as model version '{made.model_version}'")
    if made.missing:
        shown = ", ".join(made.missing[:5]) + (" …" if len(made.missing) > 5 else "")
        turns = (
            "1 turn without a prediction counts"
            if len(made.missing) == 1
            else f"{len(made.missing):,} turns without a prediction count"
        )
        typer.echo(f"{turns} as no answer: {shown}")
    for sentence in (*made.read.sentences(), *_token_sentence(made), *provenance_sentences(made.provenance)):
        typer.echo(sentence)
    if made.priced_as and not made.has_price:
        note(f"note: the price table has no model '{made.priced_as}': dollars will be NULL")
    typer.echo(f"next: eval-pipeline run --suite {suite} --model-version {model_version}")


def _token_sentence(made: "ImportedPredictions") -> Iterator[str]:
    if lacking := made.without_tokens:
        do = "does not tell its" if lacking == 1 else "do not tell their"
        of = f"{lacking:,} of {made.predictions:,} answers {do} tokens"
        yield f"NULL for the whole evaluation, since {of}: tokens in all, tokens per success"


def provenance_sentences(provenance: "Provenance") -> Iterator[str]:
    """What is known of where answers come from, and what is not."""
    from eval_pipeline.core.provenance import UNKNOWN, provenance_facts

    facts = provenance_facts(provenance)
    known = [f"{name.lower()}: {text}" for name, text in facts if text != UNKNOWN]
    unknown = [name.lower() for name, text in facts if text == UNKNOWN]
    if known:
        yield "; ".join(known)
    if unknown:
        yield f"unknown, and shown as that: {', '.join(unknown)} (options say it; importing again takes them over)"


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
