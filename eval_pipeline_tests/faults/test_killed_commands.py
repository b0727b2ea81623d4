"""Commands are killed at their writes: the next command completes them, and the store equals the record."""

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eval_pipeline.operations.upkeep.verifying import unreadable_files
from eval_pipeline.workspace.noting.commands import lag
from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import Lab, Puppet, case, number

WRITES = ("replace", "rename", "unlink", "remove", "rmdir", "fsync")
"""What of `os` changes files, or makes a change last. SQLite and DuckDB see to their own."""
AT, COUNTED = "KILLED_AT", "WRITES_COUNTED"
NEXT = ("prune", "--keep", "90")
"""A command that has nothing to do itself."""
PUPPET = {"name": "puppet", "provider": "simulated"}
DATES = ("2026-03-01", "2026-03-02")


def killed() -> None:
    """`eval-pipeline` in a child that kills itself before the write of the number in `AT`; for `forked`."""
    from eval_pipeline.cli import main

    at, count = int(os.environ[AT]), 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            nonlocal count
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **more)

        return call

    end = os._exit

    def ended(code: int) -> None:
        Path(os.environ[COUNTED]).write_text(str(count))
        end(code)

    for name in WRITES:
        setattr(os, name, counted(getattr(os, name)))
    os._exit = ended  # type: ignore[assignment]
    main()


def changed_gold(lab: Lab) -> None:
    path = lab.home.data / "suites" / "small" / "cases" / "c1.yaml"
    path.write_text(path.read_text().replace("57", "58"))


def changed_options(lab: Lab) -> None:
    lab.versions(PUPPET, {"name": "second", "provider": "oracle", "max_tokens": 5})


def damaged(lab: Lab) -> None:
    for table in ("statistics", "trends"):
        path = next((lab.home.record / table).rglob("*.parquet"))
        path.write_bytes(path.read_bytes()[:-9])


def answers(lab: Lab) -> None:
    rows = [{"case_id": f"c{place}", "turn_index": 0, "response": number(50)} for place in range(3)]
    (lab.home.data / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass(frozen=True)
class Given:
    """A command, and what it finds."""

    arguments: tuple[str, ...]
    prepare: Callable[[Lab], object] = field(default=lambda _: None)
    again: frozenset[int] = frozenset({0})  # exit codes of the same command once it has been completed


COMMANDS = {
    "run": Given(("run", "--no-report", "--eval-date", "2026-03-03", "--fresh")),
    "run another": Given(("run", "--no-report", "--eval-date", DATES[1]), changed_options),
    "rescore": Given(("rescore",), changed_gold),
    "prune": Given(("prune", "--keep", "1")),
    "remove": Given(("remove", "second", "--yes"), again=frozenset({0, 2})),
    "purge": Given(("remove", "second", "--purge", "--yes"), again=frozenset({0, 2})),
    "publish": Given(("publish", "--full")),
    "import predictions": Given(
        ("import", "predictions", "{data}/answers.jsonl", "--suite", "small", "--model-version", "told"), answers
    ),
    "doctor": Given(("doctor", "--repair"), damaged),
}


KILLED_ONCE = ("run another", "rescore", "import predictions")
"""The others are killed between their steps by the tests of removing, pruning, repairing and publication."""


@pytest.fixture
def ready(lab: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    """Two model versions with two dates each, published and compared."""

    def make(empty: Lab) -> None:
        empty.suite(cases=[case(f"c{index}", ("50", 50.0), ("add(50, 7)", 57.0)) for index in range(3)])
        empty.versions(PUPPET, {"name": "second", "provider": "oracle"})
        for day in DATES:
            said = empty.cli("run", "--no-report", "--eval-date", day)
            assert said.code == 0, said.text

    return lab.made_once(module_folder / "kept", make)


def contents(lab: Lab) -> dict[str, str]:
    """Of the store, without what says when something was done; with the earlier evaluations of dates."""
    earlier = repr(lab.sql("SELECT COLUMNS(* EXCLUDE run_id) FROM earlier.turn_results ORDER BY ALL"))
    return lab.store_contents() | {"superseded_statistics": "", "earlier": earlier}


class Kills:
    """One home again and again, as a command finds it."""

    def __init__(self, lab: Lab, given: Given, kept: Path) -> None:
        self.lab, self.given, self.kept = lab, given, kept
        given.prepare(lab)
        shutil.copytree(lab.home.root.parent, kept)

    def run(self, at: int) -> int:
        """Runs the command, killed before the write of that number; returns its number of writes if it was not."""
        folder = self.lab.home.root.parent
        shutil.rmtree(folder)
        shutil.copytree(self.kept, folder)
        told, log = self.kept.with_name("count"), self.kept.with_name("log")
        told.unlink(missing_ok=True)
        environment = self.lab.environment | {AT: str(at), COUNTED: str(told)}
        arguments = [text.format(data=self.lab.home.data) for text in self.given.arguments]
        code = forked(f"{__name__}:killed", arguments, environment, log).wait(120)
        assert code in {0, 1, -signal.SIGKILL}, log.read_text()
        return int(told.read_text()) if code != -signal.SIGKILL else 0

    def check(self, at: int, expected: dict[str, str]) -> None:
        """What holds after the next command, and after the same one again."""
        what = f"{self.given.arguments} killed before write {at} (seed {SEED})"
        said = self.lab.cli(*NEXT)
        assert said.code == 0, f"{what}: {said.text}"
        assert lag(self.lab.home) == "", what
        published = self.lab.store_contents()
        if not list(unreadable_files(self.lab.workspace())):  # else a repair was killed before it began
            said = self.lab.cli("publish", "--full")
            # What a run was at when it was killed is for the next run.
            left_out = "it is not published until a run has completed it" in said.err
            assert said.code == left_out, f"{what}: {said.text}"
            is_another = self.given.prepare is changed_options or (left_out and "--fresh" in self.given.arguments)
            # Until the next run, a rebuilt store may have the new evaluation, or neither in the newest's place.
            assert is_another or self.lab.store_contents() == published, f"{what}: the store does not equal the record"
        again = self.lab.cli(*(text.format(data=self.lab.home.data) for text in self.given.arguments))
        assert again.code in self.given.again, f"{what}: {again.text}"
        found = contents(self.lab)
        if "--fresh" in self.given.arguments:  # asks anew each time: one that was whole when it was killed is kept
            found["earlier"] = expected["earlier"]
        assert found == expected, f"{what}: the command again gives something else"


def campaign(lab: Lab, given: Given, kept: Path, points: Callable[[int], list[int]]) -> Iterator[int]:
    """Kills a command at points chosen from the number of its writes; yields each."""
    kills = Kills(lab, given, kept)
    writes = kills.run(0)
    expected = contents(lab)
    for at in points(writes):
        if kills.run(at) == 0:  # else it has ended before: not all writes are the same each time
            kills.check(at, expected)
            yield at


@pytest.mark.parametrize("name", KILLED_ONCE)
def test_a_command_that_is_killed_is_completed_by_the_next(
    ready: Lab, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    rng = random.Random(SEED)
    found = list(
        campaign(
            ready, COMMANDS[name], tmp_path_factory.mktemp("kept") / "lab", lambda writes: [rng.randint(1, writes)]
        )
    )
    assert len(found) <= 1


@pytest.mark.soak
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_killed_all_over(ready: Lab, tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    def points(writes: int) -> list[int]:
        rng, step = random.Random(SEED), max(1, writes // 20)
        return [*range(rng.randint(1, step), writes + 1, step), *(rng.randint(1, writes) for _ in range(7))]

    found = list(campaign(ready, COMMANDS[name], tmp_path_factory.mktemp("kept") / "lab", points))
    print(f"{name}: seed {SEED}, killed before writes {found}")
    assert found
