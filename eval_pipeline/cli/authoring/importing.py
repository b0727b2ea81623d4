"""The command `import`, with subcommands for foreign data sets, for predictions and for the logs of other tools."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eval_pipeline.cli.added import Added, Made
from eval_pipeline.cli.options import open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core import shown
from eval_pipeline.core.errors import EndedEarlyError, MissingExtraError, UsageError

if TYPE_CHECKING:
    from eval_pipeline.core.installed.plugins import Registry
    from eval_pipeline.core.provenance import Provenance
    from eval_pipeline.operations.recorded.importing import ImportedPredictions
    from eval_pipeline.operations.recorded.traffic import TrafficChoices
    from eval_pipeline.tracks.registry import ForeignForm


class Forms(Added):
    """The subcommands of `import`: those defined here, and one for each format of logs and of data sets."""

    def kinds(self) -> "Iterator[tuple[Registry[Any], Callable[[str, Any], Made]]]":
        """Yields the registries of formats."""
        from eval_pipeline.operations.recorded.forms import ALL_LOGS
        from eval_pipeline.tracks.registry import ALL_IMPORTERS

        yield ALL_LOGS, lambda name, form: (_registers(form.what), _importing_answers(name))
        yield ALL_IMPORTERS, _importing


Suite = Annotated[str, typer.Option(help="Name of the suite to make.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first cases.")]
Into = Annotated[
    Literal["home", "data"],
    typer.Option(help="Where the suite goes: home (EVAL_HOME, not under version control) or data (the project's own)."),
]
_MOST_DOUBTS = 20
"""Golds in doubt that an import lists."""
import_app = typer.Typer(cls=Forms, help="Imports data sets and predictions made elsewhere.", no_args_is_help=True)


Source = Annotated[Path, typer.Argument(metavar="FILE", help="The file.")]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS", help="Maps our field to theirs: case_id=record_id. Repeatable."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="FIELD", help="A field to leave out; '*': all fields that are not ours."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="FIELD=VALUE", help="Only answers with this value, e.g. model=gpt-5. Repeatable."),
]
Sampling = Annotated[
    list[str] | None,
    typer.Option("--sampling", metavar="NAME=VALUE", help="A sampling setting, e.g. temperature=0. Repeatable."),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price", metavar="KIND=USD", help="Dollars per million tokens, e.g. input=3, output=15. Repeatable."
    ),
]
AnswerForm = Annotated[
    str | None, typer.Option(help="label, number, text or json; guessed from the answers if left out.")
]
PricedAs = Annotated[str | None, typer.Option(metavar="MODEL", help="Model whose prices are used.")]


@import_app.command("structures")
def import_structures(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="SDMX structure messages; also .gz and .zip.")],
) -> None:
    """Prints what SDMX structure messages describe, and what is missing, by file. Ends with 1 if anything is."""
    from eval_pipeline.core.installed.plugins import load_place
    from eval_pipeline.tracks.capabilities import Catalogued
    from eval_pipeline.tracks.registry import lacks, load_track

    if why := lacks("sdmx"):
        raise MissingExtraError(why)
    track = load_track("sdmx")
    assert isinstance(track, Catalogued)
    lines, whole = load_place(track.structures)(files)
    for line in lines:
        say(line)
    if not whole:
        raise typer.Exit(1)


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
        tool: Annotated[str | None, typer.Option(help="The tool that asked it, e.g. 'our notebook'.")] = None,
        price: Prices = None,
        priced_as: PricedAs = None,
    ) -> None:
        from eval_pipeline.cli.terminal import ProgressBars
        from eval_pipeline.operations.recorded.importing import import_predictions
        from eval_pipeline.operations.recorded.wanted import Wanted
        from eval_pipeline.workspace.progress import busy

        told = {"model": model, "prompt_version": prompt_version, "history": history, "tool": tool}
        of_all = told | {"asked_on": asked_on, "sampling": sampling, "prompt_file": prompt_file}
        wanted = Wanted.of(form, map or (), ignore or (), only or (), of_all, price, priced_as)
        workspace = open_workspace()
        with workspace.imported.in_turn(), ProgressBars() as progress, busy(progress, f"importing {source.name}"):
            made = import_predictions(workspace, source, suite, model_version, wanted)
        answers_told(made)
        say(f"next: eval-pipeline run --suite {suite} --model-version {model_version}")

    return import_answers


@import_app.command("log")
def import_any_log(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The log; its content tells what wrote it.")],
    suite: Annotated[
        str, typer.Option(help="Name of the suite, which is made unless it exists; default: as the log names it.")
    ] = "",
    model_version: Annotated[
        str, typer.Option(help="Name of the model version to register; default: the model's, one for each.")
    ] = "",
    map: Map = None,
    ignore: Ignore = None,
    only: Only = None,
    answer_form: AnswerForm = None,
    model: Annotated[str | None, typer.Option(help="The real model that answered.")] = None,
    price: Prices = None,
    priced_as: PricedAs = None,
) -> None:
    """Imports a log of any tool: its questions and right answers as a suite, its answers as model versions."""
    _import_log(source, suite, model_version, (map, ignore, only), answer_form, model, price, priced_as)


@import_app.command("traces")
def import_traces(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="OpenTelemetry traces (OTLP: .json, .jsonl, protobuf), or any log.")
    ],
    suite: Annotated[str, typer.Option(help="Name of the suite to make; default: as the file.")] = "",
    model_version: Annotated[
        str, typer.Option(help="Name of the model version with the answers; default: SUITE-answers.")
    ] = "",
    sample: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="Draw N conversations, by outcome, route, length and day."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw; another one draws others.")] = 0,
    mask: Annotated[
        bool, typer.Option("--mask", help="Mask e-mail addresses, phone numbers, IBANs, cards and IP addresses.")
    ] = False,
    mask_rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML with further rules: a name and a regular expression each."),
    ] = None,
    map: Map = None,
    answer_form: AnswerForm = None,
    price: Prices = None,
    priced_as: PricedAs = None,
) -> None:
    """Imports traces of an application: conversations as a suite, and what was answered as a model version.

    What is right need not be known: reviews tell it, or --map expected=FIELD.
    """
    from eval_pipeline.core.reading.masking import rules_of
    from eval_pipeline.operations.recorded.traffic import TrafficChoices

    rules = rules_of(mask_rules) if mask or mask_rules else None
    drawing = TrafficChoices(sample, rules, seed)
    _import_log(source, suite, model_version, (map, None, None), answer_form, None, price, priced_as, drawing)


def _import_log(
    source: Path,
    suite: str,
    model_version: str,
    told: tuple[Sequence[str] | None, Sequence[str] | None, Sequence[str] | None],
    answer_form: str | None,
    model: str | None,
    price: Sequence[str] | None,
    priced_as: str | None,
    traffic: "TrafficChoices | None" = None,
) -> None:
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.operations.recorded.log_suites import LogChoices, import_log, parted, sentences
    from eval_pipeline.operations.recorded.wanted import ROWS, Wanted
    from eval_pipeline.workspace.progress import busy

    mapped, ignore, only = told
    tasks, fields = parted(mapped or ())
    wanted = Wanted.of(ROWS, fields, ignore or (), only or (), {"model": model}, price, priced_as)
    chosen = LogChoices(suite, model_version, tasks, answer_form)
    workspace = open_workspace()
    with workspace.imported.in_turn(), ProgressBars() as progress, busy(progress, f"importing {source.name}"):
        imported = import_log(workspace, source, chosen, wanted, traffic)
    if imported.made is not None:
        workspace.imported.share_suite(imported.suite)
    for sentence in sentences(imported):
        say(sentence)
    for made in imported.versions:
        answers_told(made)
    names = " ".join(f"--model-version {made.model_version}" for made in imported.versions)
    say(f"next: eval-pipeline run --suite {imported.suite} {names}")


def _registers(what: str) -> str:
    return f"Registers the answers in {what} as a model version."


_ROWS = _registers("recorded predictions (JSON Lines, or a table: CSV, Excel, Parquet)")
import_app.command("predictions", help=_ROWS)(_importing_answers("predictions"))


def answers_told(made: "ImportedPredictions") -> None:
    """Prints what was imported as a model version."""
    from eval_pipeline.cli.terminal import note

    say(f"{made.predictions:,} predictions imported as model version '{made.model_version}'")
    for sentence in made.notes:
        say(f"note: {sentence}")
    if made.missing:
        named = ", ".join(made.missing[:5]) + (" …" if len(made.missing) > 5 else "")
        turns = (
            "1 turn without a prediction counts"
            if len(made.missing) == 1
            else f"{len(made.missing):,} turns without a prediction count"
        )
        say(f"{turns} as no answer: {named}")
    for sentence in (*made.read.sentences(), *_token_sentence(made), *provenance_sentences(made.provenance)):
        say(sentence)
    if made.priced_as and not made.has_price:
        note(f"note: the price table has no model '{made.priced_as}': dollars will be NULL")


def _token_sentence(made: "ImportedPredictions") -> Iterator[str]:
    if lacking := made.without_tokens:
        do = "does not tell its" if lacking == 1 else "do not tell their"
        of = f"{lacking:,} of {made.predictions:,} answers {do} tokens"
        yield f"NULL for the whole evaluation, since {of}: tokens in all, tokens per success"


def provenance_sentences(provenance: "Provenance") -> Iterator[str]:
    """Yields sentences on what is known about the origin of answers, and what is not."""
    from eval_pipeline.core.provenance import UNKNOWN, provenance_facts

    facts = provenance_facts(provenance)
    known = [f"{name.lower()}: {text}" for name, text in facts if text != UNKNOWN]
    unknown = [name.lower() for name, text in facts if text == UNKNOWN]
    if known:
        yield "; ".join(known)
    if unknown:
        yield f"unknown, and shown as that: {', '.join(unknown)} (options say it; importing again takes them over)"


def _importing(form: str, foreign: "ForeignForm") -> Made:
    """Returns the command for a data set format; it has a further option if the format needs additional files."""
    told = f"Imports a {form} data set as a suite of track {foreign.track}."

    def import_data_set(
        source: Annotated[Path, typer.Argument(metavar="FILE", help="The data set's file or folder.")],
        suite: Suite,
        limit: Limit = None,
        into: Into = "home",
    ) -> None:
        _import(form, source, suite, limit, (), into)

    def import_with_files(
        source: Annotated[Path, typer.Argument(metavar="FILE", help="The data set's file or folder.")],
        suite: Suite,
        further: Annotated[list[Path], typer.Option(f"--{foreign.further}", metavar="FILE", help=foreign.further_help)],
        limit: Limit = None,
        into: Into = "home",
    ) -> None:
        _import(form, source, suite, limit, further, into)

    def import_table(
        source: Annotated[Path, typer.Argument(metavar="FILE", help=".jsonl, .json, .csv, .tsv, .xlsx or .parquet.")],
        suite: Suite,
        map: Annotated[
            list[str] | None,
            typer.Option("--map", metavar="OURS=THEIRS", help="Column of a field: question=prompt. Several allowed."),
        ] = None,
        answer_form: AnswerForm = None,
        limit: Limit = None,
        into: Into = "home",
    ) -> None:
        _import(form, source, suite, limit, (), into, (map or (), answer_form))

    if foreign.maps_columns:
        return told, import_table
    return told, import_with_files if foreign.further else import_data_set


def _import(
    form: str,
    source: Path,
    suite: str,
    limit: int | None,
    further: Sequence[Path],
    into: str,
    table: tuple[Sequence[str], str | None] = ((), None),
) -> None:
    from eval_pipeline.cli.terminal import ProgressBars
    from eval_pipeline.operations.imports.importing import ImportedColumns, import_at_arms_length
    from eval_pipeline.workspace.progress import Tally

    shared = open_workspace().imported  # creates the home if needed, readable only by the user
    with shared.in_turn(), ProgressBars() as progress, Tally(progress, f"importing {source.name}") as tally:
        columns = ImportedColumns(_pairs(table[0]), table[1])
        try:
            made = import_at_arms_length(
                form, source, suite, limit, further, columns, tally.reached, into_data=into == "data"
            )
        except KeyboardInterrupt:
            raise EndedEarlyError("interrupted; nothing was imported") from None
        if into == "home":
            shared.share_suite(suite)
    say(f"{shown.counted(made.cases, 'case', 'cases')} with {shown.turns(made.turns)} imported to {made.folder}")
    for sentence in made.notes:
        say(f"note: {sentence}")
    for sentence in made.wrong_gold:
        say(f"{'left out' if made.left_out else 'gold does not hold'}: {sentence}")
    for sentence in made.doubted[:_MOST_DOUBTS]:
        say(f"gold in doubt: {sentence}")
    if (more := len(made.doubted) - _MOST_DOUBTS) > 0:
        golds = shown.counted(more, "more gold", "more golds")
        say(f"and {golds} in doubt: eval-pipeline validate --suite {suite} lists them")
    if made.not_checked:
        cases = shown.counted(made.not_checked, "case is", "cases are")
        raise EndedEarlyError(f"interrupted: {cases} left out, as the gold was not checked; import it again")
    say(f"next: eval-pipeline run --suite {suite}")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    """Parses texts `OURS=THEIRS` into a mapping of our names to theirs. Raises UsageError for any other text."""
    found: dict[str, str] = {}
    for text in given:
        ours, equals, theirs = text.partition("=")
        if not equals or not ours.isidentifier() or not theirs or ours in found:
            raise UsageError(f"--map {text}: expected OURS=THEIRS, each field once, such as question=prompt")
        found[ours] = theirs
    return found
