"""Agents from end to end: models on the real wires work in worlds, and a killed run goes on where it was."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import psutil
import pytest
import yaml

from eval_pipeline.workspace.homes.kept import EVIDENCE, kept_of_answers
from eval_pipeline_plugins.tracks.agent.checking.evidence import evidence_of
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_tests.browser.ui import eventually
from eval_pipeline_tests.fakes.agent_server import AgentServer, Call
from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.support import DAY, Lab

BUILD = """
import sqlite3
with sqlite3.connect("shop.sqlite") as database:
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL)")
    database.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(1, "Ada", 10.5), (2, "Bob", 20.25), (3, "Ada", 30.0)])
"""
ROUNDS, CONCURRENCY = 3, 2


def script(number: int) -> list[Call]:
    """Calls of all kinds, right ones and a wrong one."""
    return [
        ("sql", {"query": "SELECT customer, sum(total) FROM orders GROUP BY 1"}),
        ("sql", {"query": "SELECT nothing"}),
        ("python", {"code": "import sqlite3, time; total = 40.5; time.sleep(0.02); print(total)"}),
        ("shell", {"command": f"sleep 0.02; echo {number} >> seen.txt; cat seen.txt"}),
        ("sql", {"query": f"DELETE FROM orders WHERE id = 2 AND {number} = {number}"}),
        ("write_file", {"path": "left.csv", "text": f"n,who\n2,{number}\n"}),
        ("answer", {"answer": f"{40.5 + number}"}),
    ]


def prepare(lab: Lab) -> dict[str, list[Call]]:
    """A suite whose tasks look, change and answer; the script for each task."""
    scripts, cases = {}, []
    for number in range(ROUNDS):
        task = f"Task {number}: remove order 2, write left.csv, and tell what Ada spent plus {number}."
        scripts[task] = script(number)
        gold = [{name: arguments} for name, arguments in script(number) if name in ("write_file",)]
        gold = [{"sql": {"query": "DELETE FROM orders WHERE id = 2"}}, *gold, {"answer": 40.5 + number}]
        cases.append({"id": f"t{number}", "world": "shop", "task": task, "gold": gold})
    folder = lab.suite("work", cases, track="agent")
    world = folder / "worlds" / "shop"
    world.mkdir(parents=True)
    (world / "build.py").write_text(BUILD)
    (world / "world.yaml").write_text(yaml.safe_dump({"databases": {"shop": {"file": "shop.sqlite"}}}))
    return scripts


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_worlds()


def versions(lab: Lab, url: str, **options: Any) -> None:
    price = {"input": 1, "output": 2}
    openai = {"provider": "openai", "model": "m", "price": price, "concurrency": CONCURRENCY}
    local = {"base_url": f"{url}/v1", "api_key_env": None, **options}
    claude = {"provider": "anthropic", "model": "m", "price": price, "options": {"base_url": url, **options}}
    lab.versions(
        {"name": "chat", **openai, "options": local},
        {"name": "answers", **openai, "options": {**local, "api": "responses", "stream": False}},
        {"name": "claude", **claude},
    )


def told(lab: Lab, version: str) -> list[tuple[Any, ...]]:
    """All that does not depend on the clock."""
    turns = lab.sql(
        "SELECT turn_id, correct, failure_mode, ended, agent_answer, tool_calls, tool_errors, model_calls "
        f"FROM agent_turns WHERE model_version = '{version}' ORDER BY 1"
    )
    steps = lab.sql(
        "SELECT turn_id, step, kind, tool, arguments, text, error_class, result_rows, input_tokens, usd "
        f"FROM steps WHERE model_version = '{version}' ORDER BY 1, 2"
    )
    return [*turns, *steps]


@pytest.mark.parametrize(
    ("version", "stream", "together"),
    [("chat", True, 1), ("chat", False, 3), ("answers", False, 2), ("claude", True, 3), ("claude", False, 1)],
)
def test_a_model_works_in_a_world_over_each_wire(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, version: str, stream: bool, together: int
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-fake")
    with AgentServer(prepare(lab), together) as server:
        versions(lab, server.url, **({} if version == "answers" else {"stream": stream}))
        lab.evaluate("work", version, upto="turn_metrics")
        assert server.tools == ["sql", "python", "shell", "list_files", "read_file", "write_file", "answer"]
        calls = -(-7 // together)
        assert len(server.asked) == ROUNDS * calls == len(set(server.asked))
        plan = lab.cli("plan", "--suite", "work", "--model-version", version).text
        assert f"in the journal {ROUNDS}, attempts to make 0" in plan
    rows = told(lab, version)
    for number in range(ROUNDS):
        row = (f"work/t{number}#0", True, None, "answered", f"{40.5 + number}", 7, 1, calls)
        assert row in rows
    assert lab.one("SELECT count(*) FROM steps WHERE kind = 'tool' AND error_class IS NOT NULL") == ROUNDS
    assert lab.one("SELECT sum(usd) FROM steps") == pytest.approx(lab.one("SELECT sum(usd) FROM attempts"))


def test_a_night_judges_anew_only_what_has_changed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def counted(case: Any, turn: Any, final: Any) -> Any:
        judged.append(case.id)
        return evidence_of(case, turn, final)

    def kept_after(day: int) -> int:
        judged.clear()
        night = DAY.replace(day=day)
        lab.evaluate("work", "right", day=night, upto="turn_metrics")
        assert lab.sql(f"SELECT count(*), count_if(correct) FROM agent_turns WHERE eval_date = '{night}'") == [(3, 3)]
        return len([one for one in kept_of_answers(lab.home) if one.name.startswith(EVIDENCE)])

    prepare(lab)
    lab.versions({"name": "right", "provider": "oracle"})
    monkeypatch.setattr("eval_pipeline_plugins.tracks.agent.checking.evidence.evidence_of", counted)
    assert kept_after(1) == 3
    assert (kept_after(2), judged) == (3, [])
    file = lab.home.data / "suites" / "work" / "cases" / "t1.yaml"
    file.write_text(file.read_text().replace("41.5", "41.75"))
    assert kept_after(3) == 4


def hashes(folder: Path) -> dict[str, str]:
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def jails_of(lab: Lab) -> list[str]:
    """Command lines of jails with a world of this home."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if str(lab.home.root / "worlds") in line:
            found.append(line)
    return found


def in_jails(pid: int) -> list[int]:
    """The jails of a run, and what serves worlds in them: a zygote each, and a keeper for each attempt."""
    jails = [one for one in psutil.Process(pid).children() if one.name() == "bwrap"]
    zygotes = [zygote for jail in jails for zygote in jail.children()]
    return [one.pid for one in (*jails, *zygotes, *(keeper for zygote in zygotes for keeper in zygote.children()))]


def kill(child: Any, draw: Random, victim: str, killed: list[str]) -> None:
    """Kills the run, or something that serves its worlds."""
    with suppress(psutil.Error, OSError, IndexError):
        os.kill(child.pid if victim == "run" else draw.choice(in_jails(child.pid)), signal.SIGKILL)
        killed.append(victim)


def killed_runs(lab: Lab, undisturbed: Lab, kills: int, seed: int) -> None:
    """Kills a run, or what serves its worlds, at drawn moments, and lets it end; all is published as if nobody had."""
    draw, seen, killed = Random(seed), list[str](), list[str]()
    environment = {**lab.environment, "ANTHROPIC_API_KEY": "sk-ant-fake"}
    with AgentServer(prepare(lab), 1, seconds=0.01) as server:
        versions(lab, server.url)
        arguments = ["run", "--suite", "work", "--model-version", "chat", "--no-report"]
        for _ in range(kills):
            child = forked("eval_pipeline_tests.forked:command", arguments, environment, lab.home.root.parent / "log")
            at, then = draw.randint(1, 2), draw.randint(1, 2)
            victims = {len(server.asked) + at: "server", len(server.asked) + at + then: "run"}

            def end(number: int, victims: dict[int, str] = victims, child: Any = child) -> None:
                seen.extend(jails_of(lab))
                if number in victims:
                    delay = draw.choice([0.0, 0.005, 0.02, 0.05, 0.2])
                    Timer(delay, kill, (child, draw, victims[number], killed)).start()

            server.noticed = end
            code = child.wait(100)
            assert code in (0, -signal.SIGKILL), child.log.read_text()
            eventually(lambda: not jails_of(lab) or None, lambda: "; ".join(jails_of(lab)))
        server.noticed = lambda number: None
        worlds = hashes(lab.home.root / "worlds")
        said = lab.cli(*arguments)
        assert said.code == 0, said.text
        counts = Counter(server.asked)
    assert killed.count("server") >= kills // 2 and killed.count("run") >= kills // 2, killed
    print(f"killed: {Counter(killed)}; paid twice: {counts.total() - len(counts)}")
    assert seen, "no jail would be found that outlives its run"
    assert len(counts) == ROUNDS * 7
    assert counts.total() - len(counts) <= kills * CONCURRENCY, "more than the calls in flight were paid twice"
    assert told(lab, "chat") == told(undisturbed, "chat")
    assert hashes(lab.home.root / "worlds") == worlds
    (made,) = {Path(path).name for path in worlds if not path.endswith(".lock")}
    assert made == "shop.sqlite"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    other = Lab.at(tmp_path_factory.mktemp("undisturbed"))
    with pytest.MonkeyPatch.context() as patched, AgentServer(prepare(other)) as server:
        for name, found in other.environment.items():
            patched.setenv(name, found)
        versions(other, server.url)
        said = other.cli("run", "--suite", "work", "--model-version", "chat", "--no-report")
        assert said.code == 0, said.text
        close_worlds()
    return other


def test_a_run_killed_while_agents_work_goes_on_where_it_was(lab: Lab, undisturbed: Lab) -> None:
    killed_runs(lab, undisturbed, kills=3, seed=int(os.environ.get("KILL_SEED", "1")))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
def test_runs_of_agents_survive_sixty_kills(lab: Lab, undisturbed: Lab, seed: int) -> None:
    killed_runs(lab, undisturbed, kills=5, seed=100 + seed)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ({"provider": "anthropic", "batch": True}, "asks in batches"),
        (
            {"provider": "http", "options": {"base_url": "http://127.0.0.1:9", "path": "/", "answer_path": "$.a"}},
            "cannot work with tools",
        ),
    ],
)
def test_who_cannot_be_handed_tools_is_told_so_and_not_asked(lab: Lab, version: dict[str, Any], why: str) -> None:
    prepare(lab)
    lab.versions({"name": "other", "model": "m", **version})
    said = lab.cli("run", "--suite", "work", "--model-version", "other", "--no-report")
    assert said.code != 0
    assert why in said.text
