import logging
from functools import partial
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.installed import plugins
from eval_pipeline.core.installed.plugins import Later, Plugin, PluginError
from eval_pipeline.core.reading import arms_length
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.operations import added_commands
from eval_pipeline.operations.imports.importing import import_suite
from eval_pipeline.operations.plugins import plugins_with_trouble
from eval_pipeline.providers.registry import traits_of
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.registry import ALL_IMPORTERS, ALL_TRACKS, all_tracks, load_importer, load_track, own_tracks
from eval_pipeline.tracks.scored.turns_table import turns_table
from eval_pipeline.view.turn.parts import has_steps
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline_tests.plugins.conftest import Install
from eval_pipeline_tests.plugins.installing import child, install
from eval_pipeline_tests.support import Lab

METRIC = """
from eval_pipeline.tracks.base import Metric
from eval_pipeline.tracks.manifest import Manifest
ONE = Metric("one", lambda predicted: predicted is not None, "boolean", "Whether there is an answer; never NULL.")
KIND = Metric("kind", lambda predicted: True, "bool", "Nothing.")
OURS = Metric("numerical_match", lambda predicted: True, "boolean", "Nothing.")
class Go(Manifest): name = "go"
GO = Go()
"""
HALF = """
from eval_pipeline.tracks.base import Metric
from eval_pipeline.tracks.manifest import Manifest
class Half(Manifest):
    name, task = "half", "gone:TRACK"
    metrics = (Metric("one", lambda predicted: True, "boolean", "Nothing."),)
HALF = Half()
"""
PROVIDER = """
from eval_pipeline.providers.standins.inprocess import StandIn
class Mine(StandIn): pass
class Other: pass
"""
AGGREGATES = """
from eval_pipeline.analysis.aggregates.base import Aggregate
from eval_pipeline.store.schemas import Column, Table
def made(name, column):
    return Aggregate(Table(name, "Nothing.", (column,)), lambda turns: [], lambda rows: {})
TWICE, ODD = made("twice", Column("Suite", "VARCHAR", "")), made("odd", Column("n", "INT", ""))
"""
COMMANDS = """
def told(what: int | str) -> None: pass
def greet(name: str) -> None:
    "Greets somebody."
    raise SystemExit(f"Hello {name}")
"""
TABLED = """
from eval_pipeline.tracks.importing import add_import_options
from eval_pipeline.tracks.registry import ForeignForm
def read(source, limit, folder):
    add_import_options(folder, {"answer": {"form": "label", "labels": ["a", "b"]}})
    yield {"id": "one", "question": source.read_text(), "answer": "a"}
FORM = ForeignForm("text", "tabled:read", takes_folder=True)
"""
RAISES = "raise RuntimeError('no such\\n  library')\n"


def trouble() -> dict[str, str | None]:
    return {f"{plugin.group} {plugin.name}": told for plugin, told in plugins_with_trouble()}


def test_what_a_package_names_is_found_with_its_origin(installed: Install) -> None:
    installed("one_more", METRIC, {"metrics": {"finqa.one": "one_more:ONE"}})
    found = [told for told in plugins_with_trouble() if not told[0].is_ours]
    assert found == [(Plugin("metrics", "finqa.one", "one_more:ONE", "one_more", "1.0"), None)]


def test_one_that_raises_is_one_sentence_and_harms_no_other(installed: Install) -> None:
    installed("broken", RAISES, {"metrics": {"finqa.odd": "broken:ODD"}, "tracks": {"chess": "broken:TRACK"}})
    installed("one_more", METRIC, {"metrics": {"finqa.one": "one_more:ONE", "chess.one": "one_more:ONE"}})
    told = trouble()
    assert told["metrics finqa.odd"] == (
        "the plug-in 'finqa.odd' (eval_pipeline.metrics) of the package broken 1.0 cannot be loaded from broken:ODD: "
        "RuntimeError: no such library"
    )
    assert told["metrics finqa.one"] is None
    assert told["metrics chess.one"] is not None
    assert "its track 'chess' cannot be" in told["metrics chess.one"]
    with pytest.raises(PluginError, match=r"the plug-in 'chess' \(eval_pipeline.tracks\) of the package broken 1.0"):
        load_track("chess")


def test_the_store_goes_without_what_cannot_be_used_and_says_so_once(
    installed: Install, caplog: pytest.LogCaptureFixture
) -> None:
    installed("broken", RAISES, {"tracks": {"chess": "broken:TRACK"}, "aggregates": {"odd": "broken:ODD"}})
    with caplog.at_level(logging.WARNING):
        names = {table.name for table in (*further_tables(), *further_tables())}
    assert {"finqa_turns", "sql_turns"} <= names
    assert sorted(record.message.split("'")[1] for record in caplog.records) == ["chess", "odd"]


def test_a_track_whose_task_cannot_be_loaded_is_left_out_and_told_once(
    installed: Install, caplog: pytest.LogCaptureFixture
) -> None:
    installed("half", HALF, {"tracks": {"half": "half:HALF"}})
    assert "half" in ALL_TRACKS.usable(), "its manifest can be used"
    with caplog.at_level(logging.WARNING):
        names = {track.name for track in (*all_tracks(), *all_tracks())}
        of_half, of_none, of_agents = (has_steps(evaluated(track)) for track in ("half", "nobody", "agent"))
    assert names == own_tracks().keys()
    assert (of_half, of_none, of_agents) == (False, False, True)
    (told,) = caplog.messages
    assert told.startswith(
        "the plug-in 'half' (eval_pipeline.tracks) of the package half 1.0 cannot be loaded from gone"
    )


def evaluated(track: str) -> Any:
    return SimpleNamespace(track=track)


@pytest.mark.parametrize(
    ("group", "name", "place", "told"),
    [
        ("providers", "oracle", "mine:Mine", "is not used: eval-pipeline has one of that name"),
        ("providers", "other", "mine:Other", "is no class that inherits Traits"),
        ("metrics", "finqa.numerical_match", "mine:OURS", "finqa_turns has a column of that name"),
        ("metrics", "finqa.suite", "mine:ONE", "finqa_turns has a column of that name"),
        ("metrics", "finqa.One", "mine:ONE", "its name has to be <track>.<metric>, in lower case"),
        ("metrics", "finqa.kind", "mine:KIND", "is of the kind 'bool'; known: boolean, score, count, label"),
        ("metrics", "finqa.two", "mine:ONE", "is no Metric named 'two'"),
        ("metrics", "one", "mine:ONE", "its name has to be <track>.<metric>"),
        ("metrics", "chess.one", "mine:ONE", "there is no track 'chess'"),
        ("tracks", "finqa", "mine:ONE", "is not used: eval-pipeline has one of that name"),
        ("tracks", "chess", "mine:ONE", "is no track named 'chess'"),
        ("tracks", "chess", "mine:GO", "is no track named 'chess', but one named 'go'"),
        ("importers", "predictions", "mine:ONE", "has a command's name"),
        ("importers", "sums", "mine:ONE", "is no ForeignForm"),
        ("logs", "chats", "mine:ONE", "is no LogForm"),
        ("exports", "chats", "mine:ODD", "is no function"),
        ("commands", "chats", "mine:ODD", "is no function"),
        ("commands", "chats", "mine:told", "has parameters that cannot be options: "),
        ("commands", "run", "mine:told", "has a command's name"),
        ("homes", "ftp", "mine:ONE", "is no class that inherits HomePlace"),
        ("databases", "mysql", "mine:ONE", "is no class that inherits StatePlace"),
        ("clusters", "ray", "mine:ODD", "is no function that opens a cluster"),
        ("reports", "mine", "mine:ONE", "is no Report"),
        ("aggregates", "statistics", "mine:ONE", "there is a table or view of that name"),
        ("aggregates", "mine", "mine:ONE", "is no Aggregate"),
        ("aggregates", "Mine", "mine:ONE", "its name has to be one of a table, in lower case"),
        ("aggregates", "twice", "mine:TWICE", "would have more than one column named suite"),
        ("aggregates", "odd", "mine:ODD", "has columns of no known type: n"),
        ("metric", "finqa.one", "mine:ONE", "is in a group that nobody reads; known: tracks, providers, metrics"),
    ],
)
def test_what_is_wrong_with_a_plug_in_is_told(installed: Install, group: str, name: str, place: str, told: str) -> None:
    installed("mine", METRIC + PROVIDER + AGGREGATES + COMMANDS, {group: {name: place}})
    found = trouble()[f"{group} {name}"]
    assert found is not None
    assert found.startswith(f"the plug-in '{name}' (eval_pipeline.{group}) of the package mine 1.0 ")
    assert told in found


def test_no_store_is_made_where_our_own_tracks_are_not_found(
    installed: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone that was updated and not installed again: their tables would be gone."""
    monkeypatch.setattr(plugins, "distributions", list)
    installed("mine", PROVIDER, {"providers": {"mine": "mine:Mine"}})
    with pytest.raises(UsageError, match="make setup"):
        further_tables()


def test_a_home_that_no_package_keeps_is_refused(
    installed: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Home(tmp_path, tmp_path / "data", BucketAddress("bucket", "evals"))
    assert place_of(home).is_shared
    monkeypatch.setattr(plugins, "distributions", list)
    plugins.installed.cache_clear()
    with pytest.raises(UsageError, match=r"no package knows s3://bucket/evals, .*`make setup`"):
        place_of(home)


def test_of_two_with_one_name_the_first_package_by_name_is_used(installed: Install) -> None:
    installed("b_second", PROVIDER, {"providers": {"mine": "b_second:Mine"}})
    installed("a_first", PROVIDER, {"providers": {"mine": "a_first:Mine"}})
    assert traits_of("mine").__module__ == "a_first"
    told = [sentence for _, sentence in plugins_with_trouble()]
    assert told[0] is None
    assert told[1] is not None
    assert told[1].endswith("is not used: a_first 1.0 has one of that name")


def test_ours_is_used_where_a_package_takes_its_name(installed: Install) -> None:
    installed("mine", PROVIDER + RAISES, {"providers": {"oracle": "mine:Mine"}, "tracks": {"finqa": "mine:T"}})
    assert traits_of("oracle").__module__ == "eval_pipeline.providers.standins.oracle"
    assert load_track("finqa").name == "finqa"
    assert set(ALL_TRACKS.names()) == set(own_tracks())


def test_ours_is_used_where_it_is_a_plug_in_too(installed: Install) -> None:
    installed("a_first", PROVIDER, {"providers": {"mine": "a_first:Mine"}})
    installed("b_ours", PROVIDER, {})
    installed("eval-pipeline", "", {"providers": {"mine": "b_ours:Mine"}})
    assert traits_of("mine").__module__ == "b_ours"
    ((_, told),) = plugins_with_trouble()
    assert told is not None
    assert told.endswith("is not used: eval-pipeline has one of that name")


def test_no_importer_takes_the_name_of_a_form_of_logs(installed: Install) -> None:
    installed("mine", METRIC, {"importers": {"chats": "mine:ONE"}, "logs": {"chats": "mine:ONE"}})
    told = trouble()["importers chats"]
    assert told is not None
    assert told.endswith("has a command's name")


def test_a_reader_of_a_form_that_cannot_be_loaded_is_told(installed: Install) -> None:
    code = "from eval_pipeline.tracks.registry import ForeignForm\nFORM = ForeignForm('finqa', 'gone:read')\n"
    installed("forms", code, {"importers": {"sums": "forms:FORM"}})
    with pytest.raises(PluginError, match=r"'sums' .* cannot be loaded from gone:read: ModuleNotFoundError"):
        load_importer("sums")


def test_a_suite_has_the_metrics_that_it_asks_for(installed: Install, lab: Lab) -> None:
    installed("one_more", METRIC, {"metrics": {"finqa.one": "one_more:ONE"}})
    lab.suite("plain")
    lab.suite("asking", metrics=["one", "one", "numerical_match"])
    tracks = {name: source.track() for name, source in lab.workspace().suites.items()}
    plain = [metric.name for metric in tracks["plain"].metrics]
    assert [metric.name for metric in tracks["asking"].metrics] == [*plain, "one"]
    assert plain == [metric.name for metric in load_track("finqa").metrics]
    columns = {table.name: [column.name for column in table.columns] for table in further_tables()}
    assert "one" in columns["finqa_turns"]
    assert "one" not in [column.name for column in turns_table(tracks["plain"]).columns]


def test_a_suite_that_asks_for_a_metric_nobody_provides_is_refused(installed: Install, lab: Lab) -> None:
    installed("broken", RAISES, {"metrics": {"finqa.odd": "broken:ODD"}})
    folder = lab.suite(metrics=["gone", "odd"])
    with pytest.raises(InputError) as raised:
        read_suite(lab.workspace().suite("small"))
    first, second = raised.value.problems
    assert (first.file, first.field) == (str(folder / "suite.yaml"), "metrics.0")
    assert first.line is not None
    assert first.message == (
        "no metric 'gone' for track 'finqa': beside the track's own, installed packages add odd; a package may be "
        "missing"
    )
    assert (second.field, "RuntimeError: no such library" in second.message) == ("metrics.1", True)


def test_a_package_adds_commands_and_takes_none(lab: Lab, tmp_path: Path) -> None:
    points = {"greet": "mine:greet", "doctor": "mine:greet", "gone": "mine:gone", "odd": "mine:told"}
    site = install(tmp_path / "site", "mine", COMMANDS, {"commands": points})
    said = child(lab, site, "--help")
    assert said.code == 0, said.err
    lines = [" ".join(line.strip(" │").split()) for line in said.out.splitlines()]
    assert "greet Greets somebody." in lines
    assert {"odd", "gone", "sql-diff", "doctor"} <= {line.partition(" ")[0] for line in lines}
    assert child(lab, site, "greet", "you").text.strip() == "Hello you"
    said = child(lab, site, "odd")
    assert (said.code, "of the package mine 1.0 has parameters that cannot be" in said.err) == (2, True), said.text
    assert "eval-pipeline:" in child(lab, site, "doctor").out


def test_the_readers_of_our_data_sets_are_where_they_are_said_to_be() -> None:
    ours = [name for name, plugin in ALL_IMPORTERS.installed().items() if plugin.is_ours]
    assert len(ours) > 15
    assert all(callable(load_importer(name)[1]) for name in ours)


def test_an_importer_gives_the_options_of_the_suite(installed: Install, lab: Lab, tmp_path: Path) -> None:
    installed("tabled", TABLED, {"importers": {"tabled": "tabled:FORM"}})
    source = tmp_path / "source.txt"
    source.write_text("a or b?")
    made = import_suite(lab.workspace(), "tabled", source, "few")
    assert read_header(made.folder).require().options["answer"]["labels"] == ["a", "b"]


def test_a_fault_is_that_of_the_package_in_whose_code_it_arose(installed: Install) -> None:
    code = "def write(): return {}['x']\ndef called(work): return work()\n"
    installed("broken", code, {"reports": {"odd": "broken:write"}})
    written, called = (plugins.load_place(f"broken:{name}") for name in ("write", "called"))
    for fault in (written, partial(called, lambda: 1 / 0)):
        with pytest.raises((ArithmeticError, LookupError)) as raised:
            fault()
        assert plugins.at_fault(raised.value) == "broken 1.0"
    assert plugins.at_fault(KeyError()) == "eval-pipeline"
    assert arms_length._outcome(written, [])["fault"] == "KeyError: 'x' (in the code of broken 1.0)"


@pytest.mark.parametrize("place", ["gone:run", "eval_pipeline.core.model:gone"])
def test_what_is_at_no_place_is_an_error_only_where_it_is_called(place: str) -> None:
    later = Later(place)
    assert not hasattr(later, "__wrapped__"), "whoever looks for it would import what is meant for later"
    for use in (later, later.function):
        with pytest.raises((ModuleNotFoundError, AttributeError), match="gone"):
            use()


def test_what_is_called_later_takes_what_its_function_takes() -> None:
    later = Later("eval_pipeline.core.shown:counted")
    names = list(signature(later.function()).parameters)
    assert list(signature(later).parameters) == names
    assert list(signature(partial(later, 1)).parameters) == names[1:]


def test_names_of_our_commands_are_known_to_be_taken() -> None:
    from eval_pipeline.cli.app import COMMANDS

    assert COMMANDS.keys() == added_commands.COMMANDS


def test_unknown_names_list_what_is_installed(installed: Install) -> None:
    installed("mine", PROVIDER, {"providers": {"mine": "mine:Mine"}})
    with pytest.raises(UsageError, match=r"unknown provider 'nobody'; allowed: .*, command, local, mine"):
        traits_of("nobody")
