"""A laboratory for the pipeline: a home of its own, suites and model versions made up in a test, runs, and SQL."""

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import duckdb
import pytest
import yaml

from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting, stage_of
from eval_pipeline.chain.runner import run_chain, run_stage
from eval_pipeline.cli.evaluating.demo import START
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Json, Partition, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.entries import yaml_entries
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.providers.standins.inprocess import InProcess
from eval_pipeline.store.published.query import connect_read_only
from eval_pipeline.store.tables import ERRORS, all_tables
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.tabled.track_tables import track_tables
from eval_pipeline.workspace.workspace import StageResult, Workspace
from eval_pipeline_tests.workers import shared_folder

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "data"
PRODUCT = ("eval_pipeline", "eval_pipeline_plugins")
"""The packages."""
DAY = date(2026, 3, 1)
ASKED_ON = "2026-03-01"
WIDE = 300

Answer = str | Response | Exception


class Puppet(InProcess):
    """A provider whose answers a test gives, and which remembers what it was asked.

    Attributes:
        answer: what a call gives; the gold answer by default.
        asked: every call, in order.
        opened: how often any of them was started.
    """

    simulated: ClassVar[bool] = False
    recorded: ClassVar[bool] = False
    answer: ClassVar[Callable[[Call], Answer]]
    asked: ClassVar[list[Call]]
    opened: ClassVar[int]

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        pass

    @classmethod
    def reset(cls) -> None:
        cls.answer = staticmethod(lambda call: call.gold.oracle())
        cls.asked, cls.opened = [], 0

    @classmethod
    def turns_asked(cls) -> list[str]:
        """`<case>#<index>` of every call, sorted."""
        return sorted(f"{call.case_id}#{call.turn_index}" for call in cls.asked)

    def request(self, call: Call) -> Json:
        return {"turn": call.turn_id, "number": call.number, "prompt": call.prompt.text()}

    async def generate(self, call: Call) -> Response:
        Puppet.asked.append(call)
        said = Puppet.answer(call)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Response) else response(said)

    async def __aenter__(self) -> "Puppet":
        Puppet.opened += 1
        return self


def copied_product(folder: Path) -> dict[str, Path]:
    """Copies the packages to a folder, with their bytecode: only what changes is compiled. Returns them by name."""
    return {name: Path(shutil.copytree(ROOT / name, folder / name)) for name in PRODUCT}


def response(text: str, tokens_in: int | None = 100, tokens_out: int | None = 10, **more: Any) -> Response:
    """A response that is the same every time."""
    return Response(text, usage=Usage(tokens_in, tokens_out), latency_ms=5.0, asked_on=ASKED_ON, **more)


def number(value: float | str) -> str:
    """A response that says the number."""
    return json.dumps({"plan": [{"tool": "extract", "value": value, "source": "text"}]})


BROKEN = '{"plan": ['
"""A response that does not parse."""


def case(name: str, *turns: tuple[str, float | str], **more: Any) -> dict[str, Any]:
    """A case in finqa's format, from (program, answer) pairs."""
    document = {"pre_text": f"the report of {name}.", "table": [["item", "2020"], ["sales", "50"]], "post_text": "end"}
    asked = [{"question": f"{name} {i}?", "program": p, "answer": a} for i, (p, a) in enumerate(turns)]
    return {"id": name, "document": document, "turns": asked, **more}


TWO_CASES = (
    case("alpha", ("50", 50.0), ("add(50, 7)", 57.0), tags=["easy"]),
    case("beta", ("subtract(50, 8), divide(#0, 50)", 0.84), tags=["hard"]),
)
"""Three turns in two conversations, with 0, 1 and 2 operations."""


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str
    raw: bytes = b""

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Lab:
    """One home for one test."""

    home: Home

    @classmethod
    def at(cls, folder: Path) -> "Lab":
        lab = cls(Home(folder / "home", folder / "data"))
        (lab.home.data / "suites").mkdir(parents=True, exist_ok=True)
        return lab

    def made_once(self, kept: Path, make: Callable[["Lab"], object]) -> "Lab":
        """This home as `make` leaves it, which is called by the first test only: others begin with a copy of `kept`.

        The home is at one place for all of them, as its paths are in what Dagster keeps.
        """
        folder = self.home.root.parent
        if kept.exists():
            shutil.rmtree(folder)
            shutil.copytree(kept, folder, copy_function=shutil.copy2)
        else:
            make(self)
            shutil.copytree(folder, kept, copy_function=shutil.copy2)
        return self

    @property
    def environment(self) -> dict[str, str]:
        return {"EVAL_HOME": str(self.home.root), "EVAL_DATA": str(self.home.data)}

    def workspace(self) -> Workspace:
        return Workspace(self.home)

    def suite(self, name: str = "small", cases: Sequence[Mapping[str, Any]] = TWO_CASES, **header: Any) -> Path:
        """Writes a suite with a YAML file a case, or an empty one without; returns its folder."""
        folder = self.home.data / "suites" / name
        (folder / "cases").mkdir(parents=True, exist_ok=True)
        for found in cases:
            (folder / "cases" / f"{found['id']}.yaml").write_text(yaml.safe_dump(dict(found), sort_keys=False))
        if not cases:
            (folder / "cases" / "none.yaml").touch()
        told = {"name": name, "version": "1", "track": "finqa", "cases": "cases/*.yaml"} | header
        (folder / "suite.yaml").write_text(yaml.safe_dump(told, sort_keys=False))
        return folder

    def shipped(self, suite: str, chosen: int | Sequence[Json]) -> Path:
        """A shipped suite with its first cases, or with these, as to check all takes seconds; returns its folder."""
        source, folder = SHIPPED / "suites" / suite, self.home.data / "suites" / suite
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("cases"))
        shutil.copy(SHIPPED / "model_versions.yaml", self.home.data)
        if isinstance(chosen, int):
            entries = chain.from_iterable(yaml_entries(path.read_text(), "") for path in sorted(source.glob("cases/*")))
            chosen = [entry.raw for entry in islice(entries, chosen)]
        (folder / "cases").mkdir()
        (folder / "cases" / "some.yaml").write_text(yaml.safe_dump(list(chosen), sort_keys=False))
        return folder

    def versions(self, *entries: Mapping[str, Any]) -> None:
        """Writes `model_versions.yaml`."""
        text = yaml.safe_dump({"model_versions": [dict(entry) for entry in entries]}, sort_keys=False)
        (self.home.data / "model_versions.yaml").write_text(text)

    def evaluate(
        self,
        suite: str = "small",
        version: str = "puppet",
        *,
        day: date = DAY,
        scope: Scope | None = None,
        epoch: str = "",
        run_id: str = "run",
        publish: bool = False,
        upto: str = "",
        canary: bool = True,
    ) -> dict[str, StageResult]:
        """Runs every stage of a partition, or those up to one, without Dagster: what came of each, by name."""
        inputs = self.inputs(
            suite, version, day=day, scope=scope or Scope(), run=RunContext(run_id, epoch, canary=canary)
        )
        chain = chain_of(inputs.track)
        stages = [stage for stage in (*ingesting(chain), *evaluating(chain)) if stage.writes]
        if upto:
            stages = stages[: [stage.name for stage in stages].index(upto) + 1]
        published = [stage_of(inputs.track, "published")] if publish else []
        return run_chain([*stages, *published], inputs)

    def inputs(self, suite: str = "small", version: str = "puppet", *, day: date = DAY, **fields: Any) -> Inputs:
        """What the stages of an evaluation are handed."""
        return Inputs.of(self.workspace(), Partition(suite, version, day), **fields)

    def stage(self, name: str, inputs: Inputs | None = None) -> StageResult:
        """Runs one stage of an evaluation, or of its suite."""
        inputs = inputs or self.inputs()
        return run_stage(stage_of(inputs.track, name), inputs)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query against the published store; against the record's files where nothing was published."""
        connection = connect_read_only(self.home.store) if self.home.store.exists() else self._over_files()
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def _over_files(self) -> "duckdb.DuckDBPyConnection":
        connection = duckdb.connect(":memory:")
        for table in (*all_tables(track_tables()), ERRORS):
            folders = [self.home.record / source.name for source in table.record_tables()]
            files = [
                str(path) for folder in folders for path in folder.rglob("*.parquet") if "evaluation=" not in str(path)
            ]
            if files:
                found = f"read_parquet({files}, hive_partitioning = false, union_by_name = true)"
                connection.execute(f'CREATE VIEW "{table.name}" AS SELECT * FROM {found}')
        return connection

    def one(self, query: str) -> Any:
        """The only value of a query."""
        ((value,),) = self.sql(query)
        return value

    def store_contents(self) -> dict[str, str]:
        """Hash of the ordered rows of every published table but `runs`, whichever runs made them."""
        with closing(connect_read_only(self.home.store)) as store:
            named = store.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
            names = [name for (name,) in named if name != "runs"]
            but = "SELECT COLUMNS(lambda name: name <> 'run_id') FROM"
            rows = {name: repr(store.execute(f'{but} "{name}" ORDER BY ALL').fetchall()) for name in names}
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in rows.items()}

    def record_files(self) -> dict[str, tuple[int, int]]:
        """(time of change, inode) of every file of the record but those of `runs`."""
        files = [path for path in self.home.record.rglob("*.parquet") if "runs" not in path.parts]
        return {
            str(path.relative_to(self.home.record)): (path.stat().st_mtime_ns, path.stat().st_ino) for path in files
        }

    def record_file(self, table: str) -> Path:
        """The only file of a table."""
        (path,) = (self.home.record / table).rglob("*.parquet")
        return path

    def cli(self, *arguments: str) -> Said:
        """`eval-pipeline` in this process."""
        return command(*arguments)

    def child(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`eval-pipeline` in a process of its own, forked from one with the imports done: 20 ms instead of seconds."""
        from eval_pipeline_tests.forked import completed

        return completed("eval_pipeline_tests.forked:command", arguments, self.environment | {"COLUMNS": str(WIDE)})

    def fresh(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """`eval-pipeline` in an interpreter of its own, where its start, packages or end are tested."""
        return python(self, "-c", START, *arguments, **options)


def python(lab: Lab, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Python in a process of its own, on the lab's home."""
    environment = os.environ | lab.environment | {"COLUMNS": str(WIDE)}
    found = [sys.executable, *arguments]
    return subprocess.run(
        found, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options
    )


def command(*arguments: str) -> Said:
    """What `eval-pipeline` says to the arguments, run in this process."""
    from eval_pipeline.cli import terminal
    from eval_pipeline.cli.app import command_line

    raw = io.BytesIO()
    out, err = io.TextIOWrapper(raw, encoding="utf-8", write_through=True), io.StringIO()
    patches = (
        patch.object(sys, "argv", ["eval-pipeline", *arguments]),
        patch.object(terminal.console, "_width", WIDE),
        patch.object(terminal.errors, "_width", WIDE),
    )
    # Nothing here patches `signal.signal`: a mock that is put back as a handler counts as 1, which is SIG_IGN.
    with ExitStack() as stack, handlers_kept(), redirect_stdout(out), redirect_stderr(err):
        for patched in patches:
            stack.enter_context(patched)
        code = command_line()
    out.flush()
    return Said(code, raw.getvalue().decode("utf-8", "replace"), err.getvalue(), raw.getvalue())


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """A folder that one of the test processes fills and all of them read."""
    root = shared_folder(factory)
    folder = root / f"shared-{name}"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            folder.mkdir(exist_ok=True)
            build(folder)
            (folder / ".done").touch()
    return folder


@contextmanager
def surroundings(lab: Lab) -> Iterator[None]:
    """The environment of a home, for fixtures that outlive one test."""
    with patch.dict(os.environ, lab.environment), patch("os.fsync", lambda handle: None):
        yield
