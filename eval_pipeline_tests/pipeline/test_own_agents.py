"""The user's own agents from end to end: on real SDKs they solve tasks of the sample, and a killed run goes on."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from random import Random
from shutil import copytree, rmtree
from threading import Timer
from typing import Any

import psutil
import pytest
import yaml

from eval_pipeline.asking.answers import Counters
from eval_pipeline.cli.evaluating.planned import plan_lines
from eval_pipeline.cli.looking import inspecting
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs import planning
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_tests.asking.proxy.proxied import message
from eval_pipeline_tests.browser.ui import eventually
from eval_pipeline_tests.fakes.agent_server import AgentServer, Call
from eval_pipeline_tests.fakes.wire_server import Sent, WireServer
from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.pipeline.test_agent_runs import in_jails, jails_of, kill
from eval_pipeline_tests.support import SHIPPED, Lab

EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
KEY = "sk-planted-0123456789abcdef"


def python(code: str) -> Call:
    return "shell", {"command": f"python3 - <<'END'\n{code}\nEND"}


SOLVED: dict[str, list[Call]] = {
    "How many customers of the CRM live in France?": [
        ("shell", {"command": "ls; cat notes/*.md"}),
        python(
            "import sqlite3\nfound = sqlite3.connect('crm.sqlite')\n"
            "print(found.execute(\"SELECT count(*) FROM customers WHERE country = 'France'\").fetchone()[0])"
        ),
        ("answer", {"answer": "12"}),
    ],
    "Which posted voucher is not balanced?": [
        ("shell", {"command": "cat policy.md; cat nothing.md"}),
        ("answer", {"answer": "V-1070"}),
    ],
    "One voucher was entered twice by mistake": [
        python(
            "import sqlite3\nfound = sqlite3.connect('ledger.sqlite')\n"
            "found.execute('DELETE FROM entries WHERE id IN (145, 146)')\nfound.commit()"
        ),
        ("answer", {"answer": "done"}),
    ],
}
"""What the model of an agent calls, by the task's words."""
CALLS = sum(map(len, SOLVED.values()))
CASE = "shop_french_customers"


@pytest.fixture
def sample(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Some tasks of the sample, and keys that no agent may see."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    lab.shipped("agents_sample", [case for case in shipped_cases() if any(task in case["task"] for task in SOLVED)])
    limit(lab)
    yield lab
    close_worlds()


def shipped_cases() -> list[dict[str, Any]]:
    files = sorted((SHIPPED / "suites" / "agents_sample" / "cases").glob("*.yaml"))
    return [case for file in files for case in yaml.safe_load(file.read_text())]


def limit(lab: Lab, **limits: Any) -> None:
    """Sets the limits of the tasks; a busy host starts programs slowly."""
    suite = lab.home.data / "suites" / "agents_sample" / "suite.yaml"
    told = yaml.safe_load(suite.read_text())
    told["options"]["limits"] = {"seconds": 900, **limits}
    suite.write_text(yaml.safe_dump(told))


def agents(lab: Lab, url: str, folder: Path = EXAMPLES, **more: Any) -> None:
    """A model version for each example; `more` are further fields."""
    upstream = {"anthropic": url, "openai": f"{url}/v1"}
    own = {"provider": "command", "model": "m", "price": {"input": 1, "output": 2}, "concurrency": 2, **more}
    lab.versions(
        *(
            {"name": name, **own, "options": {"command": ["python", f"{name}.py"], **told}}
            for name in ("on_anthropic", "on_openai")
            for told in [{"folder": str(folder), "upstream": upstream, "env": {"MODEL": "m"}}]
        )
    )


def run(lab: Lab, version: str, *more: str) -> Any:
    return lab.cli("run", "--suite", "agents_sample", "--model-version", version, "--no-report", *more)


@pytest.mark.parametrize("version", ["on_anthropic", "on_openai"])
def test_an_agent_on_a_real_sdk_is_evaluated_as_it_is(sample: Lab, version: str) -> None:
    with AgentServer(SOLVED) as server:
        agents(sample, server.url, max_cost_usd=9)
        plan = sample.cli("plan", "--suite", "agents_sample", "--model-version", version).text
        assert "attempts to make 3" in plan and "not known before" in plan
        assert "at most 120 by the cases' limits, and for at most $9.00 by max_cost_usd" in plan
        said = run(sample, version)
        assert said.code == 0, said.text
        assert (server.tools, len(server.asked)) == (["shell", "answer"], CALLS)
        plan = sample.cli("plan", "--suite", "agents_sample", "--model-version", version).text
        assert "attempts to make 0" in plan
        again = planning.plan(sample.workspace(), Partition("agents_sample", version, date.today()), Scope(), "anew")
        assert (again.attempts, again.to_ask, again.calls) == (3, 3, 120)
        assert again.calls_each == pytest.approx(CALLS / 3)
        assert f"about {CALLS}, going by 2.33 an attempt" in "".join(plan_lines(again))
    turns = sample.sql("SELECT turn_id, task_correct, ended, model_calls, agent_answer FROM agent_turns ORDER BY 1")
    assert [turn[1:4] for turn in turns] == [(True, "answered", 2), (True, "answered", 2), (True, "answered", 3)]
    steps = sample.sql(
        "SELECT kind, tool, error_class, input_tokens, text FROM steps WHERE turn_id LIKE '%french%' ORDER BY step"
    )
    assert [step[:2] for step in steps] == [
        ("model", None),
        ("tool", "shell"),
        ("model", None),
        ("tool", "shell"),
        ("model", None),
        ("tool", "own answer"),
        ("tool", "answer"),
    ]
    assert (steps[0][3], steps[3][4]) == (100, "12\n")
    prompts = [text for (text,) in sample.sql("SELECT text FROM attempts JOIN prompts USING (prompt_hash)")]
    assert len(prompts) == 3 and all(text.startswith("[user]\nYou work on a task") for text in prompts)
    assert sample.one("SELECT sum(usd) FROM steps") == pytest.approx(sample.one("SELECT sum(usd) FROM attempts"))
    everything = b"".join(path.read_bytes() for path in sample.home.root.rglob("*") if path.is_file())
    assert KEY.encode() not in everything


WITH_TOOLS = """
import json, os, subprocess, sys, urllib.request
def call(name, **arguments):
    request = urllib.request.Request(f"{os.environ['EVAL_TOOLS']}/{name}", json.dumps(arguments).encode())
    return json.loads(urllib.request.urlopen(request).read())
def by_mcp(*messages):
    sent = "\\n".join(json.dumps({"jsonrpc": "2.0", **one}) for one in messages)
    told = subprocess.run(["python", "/box/inside/tools_stdio.py"], input=sent, capture_output=True, text=True)
    return [json.loads(line)["result"] for line in told.stdout.splitlines()]
task = sys.stdin.read()
if "district Old Town" in task:
    said = call("ask_user", question="Which payments do you mean?")["result"]
    assert "/ask_user" in task and "fares less refunds" in said, said
    listed, called = by_mcp(
        {"id": 1, "method": "tools/list"},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_files", "arguments": {}}},
    )
    assert "ask_user" in [one["name"] for one in listed["tools"]] and "README.md" in called["content"][0]["text"]
    print("ANSWER")
else:
    assert "/answer" in task and not call("answer", answer=7)["ends"]
    assert call("answer", answer="E7")["ends"]
    os.kill(os.getpid(), 9)
"""


@pytest.mark.always
def test_a_program_asks_the_user_answers_again_and_has_the_tools_of_the_case(sample: Lab, tmp_path: Path) -> None:
    """It asks no model; where the user goes on, the answer is kept however the program ends."""
    found = {case["id"]: case for case in shipped_cases()}
    gold = found["bikes_earned"]["gold"][-1]["answer"], found["energy_missing"]["gold"][-1]["answer"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "on_openai.py").write_text(WITH_TOOLS.replace("ANSWER", str(gold[0])).replace("E7", gold[1]))
    rmtree(sample.home.data / "suites" / "agents_sample")
    sample.shipped("agents_sample", [found["bikes_earned"], found["energy_missing"]])
    limit(sample)
    with AgentServer({}) as server:
        agents(sample, server.url, tmp_path / "own")
        said = run(sample, "on_openai")
        assert said.code == 0, said.text
    turns = sample.sql("SELECT turn_id, task_correct, ended, tool_calls FROM agent_turns ORDER BY 1")
    assert [turn[1:] for turn in turns] == [(True, "answered", 3), (True, "answered", 2)]
    steps = sample.sql("SELECT tool, error_class, arguments FROM steps ORDER BY turn_id, step")
    assert [step[0] for step in steps] == ["ask_user", "list_files", "answer", "answer", "answer"]


AT_ONCE = """
import json, os, sys, threading, urllib.error, urllib.request
def ask(path, body=None):
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, body)
    request.add_header("content-type", "application/json")
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
told = {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": sys.stdin.read()}]}
body = json.dumps(told).encode()
statuses = [ask("/v1/files"), ask("/admin", b"{}"), ask("/v1/messages", b"{")]
threads = [threading.Thread(target=lambda: statuses.append(ask("/v1/messages", body))) for _ in range(16)]
[one.start() for one in threads], [one.join() for one in threads]
print(sorted(statuses))
"""


@pytest.mark.parametrize(
    ("limits", "fields", "most"),
    [
        ({"model_calls": 3}, {}, 3),
        ({}, {"max_cost_usd": 0.005}, 12),
    ],
)
def test_who_asks_sixteen_times_at_once_gets_no_more_than_is_allowed(
    sample: Lab, tmp_path: Path, limits: dict[str, Any], fields: dict[str, Any], most: int
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "on_anthropic.py").write_text(AT_ONCE)
    limit(sample, **limits)
    with AgentServer(SOLVED, seconds=0.05) as server:
        agents(sample, server.url, tmp_path / "own", **fields)
        said = run(sample, "on_anthropic", "--case", CASE)
        assert 1 <= len(server.asked) <= most, said.text
    answered = sample.sql("SELECT agent_answer FROM agent_turns WHERE ended = 'answered'")
    assert answered or fields, said.text
    for (statuses,) in answered:
        assert yaml.safe_load(statuses)[-2:] == [404, 404] and statuses.count("200") == len(server.asked)


BY_DOOR = """
class ran:
    returncode, stderr = 0, ""
    def __init__(self, command):
        import urllib.request
        told = json.dumps({"command": command}).encode()
        with urllib.request.urlopen(f"{os.environ['EVAL_TOOLS']}/shell", told) as said:
            self.stdout = json.loads(said.read())["result"]
client"""


def by_door(folder: Path) -> Path:
    """The example whose commands are run by the case's own tool, so that there are processes of tools to kill, too."""
    text = (EXAMPLES / "on_anthropic.py").read_text()
    own = 'ran = subprocess.run(["sh", "-c", call.input["command"]], capture_output=True, text=True)'
    assert own in text and "\nclient" in text
    folder.mkdir()
    told = (
        text.replace(own, 'done = ran(call.input["command"])')
        .replace("ran.std", "done.std")
        .replace("ran.ret", "done.ret")
    )
    (folder / "on_anthropic.py").write_text(told.replace("\nclient", BY_DOOR, 1))
    return folder


def kill_in_worlds(child: Any, draw: Random, victim: str, killed: list[str]) -> None:
    """Kills a process of the program (`command`) or of a tool, or what `kill` does."""
    if victim not in ("command", "tool"):
        kill(child, draw, victim, killed)
        return
    with suppress(psutil.Error, OSError, IndexError):
        keepers = [psutil.Process(pid) for pid in in_jails(child.pid)]
        inner = {one for keeper in keepers for one in keeper.children(recursive=True)} - {*keepers}
        is_own = {one.pid: any("on_anthropic" in word for word in one.cmdline()) for one in inner}
        draw.choice([one for one in inner if is_own[one.pid] is (victim == "command")]).kill()
        killed.append(victim)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 21))])
def test_a_killed_run_goes_on_where_it_was(sample: Lab, tmp_path: Path, seed: int) -> None:
    """The run, what serves its worlds, its program or a tool is killed: no orphan, and nothing is paid twice."""
    draw, killed, rounds = Random(int(os.environ.get("KILL_SEED", seed))), list[str](), 3
    arguments = ["run", "--suite", "agents_sample", "--model-version", "on_anthropic", "--no-report"]
    environment = {**sample.environment, "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    slow = {task: [slowly(call) for call in calls] for task, calls in SOLVED.items()}
    with AgentServer(slow, seconds=0.01) as server:
        agents(sample, server.url, by_door(tmp_path / "own"))
        for number in range(rounds):
            child = forked(
                "eval_pipeline_tests.forked:command", arguments, environment, sample.home.root.parent / "log"
            )
            first = draw.choice(["server", "command", "tool"] if number else ["server", "tool"])
            victims = {len(server.asked) + 1: first, len(server.asked) + draw.randint(2, 3): "run"}

            def end(number: int, victims: dict[int, str] = victims, child: Any = child) -> None:
                if number in victims:
                    delay = draw.choice([0.0, 0.02, 0.1])
                    Timer(delay, kill_in_worlds, (child, draw, victims[number], killed)).start()

            server.noticed = end
            assert child.wait(100) in (0, -signal.SIGKILL), child.log.read_text()
            eventually(lambda: not jails_of(sample) or None, lambda: "; ".join(jails_of(sample)))
        server.noticed = lambda number: None
        said = run(sample, "on_anthropic")
        assert said.code == 0, said.text
        counts, kinds = Counter(server.asked), Counter(killed)
    hurt = kinds["command"] + kinds["tool"]  # a program that is killed has given up; a tool that is killed says so
    twice = counts.total() - len(counts)
    print(f"killed: {dict(kinds)}; paid twice: {twice}; asked otherwise: {len(counts) - CALLS}")
    assert "run" in killed, killed
    assert twice <= len(killed) * 2, "more than the calls in flight were paid twice"
    assert CALLS - 3 * hurt <= len(counts) <= CALLS + 3 * hurt
    right = sample.one("SELECT count(*) FILTER (task_correct) FROM agent_turns")
    assert sample.one("SELECT count(*) FROM agent_turns") == 3 and right >= 3 - hurt


def slowly(call: Call) -> Call:
    """The same call, whose command takes long enough to be killed."""
    name, arguments = call
    return (name, {"command": f"sleep 0.05; {arguments['command']}"}) if name == "shell" else call


def test_a_changed_program_is_another_evaluation(sample: Lab, tmp_path: Path) -> None:
    own = Path(copytree(EXAMPLES, tmp_path / "own"))
    with AgentServer(SOLVED) as server:
        agents(sample, server.url, own)
        for _ in range(2):
            assert run(sample, "on_anthropic", "--case", CASE).code == 0
        assert len(server.asked) == 3
        (own / "on_anthropic.py").write_text(f"{(own / 'on_anthropic.py').read_text()}# changed\n")
        assert run(sample, "on_anthropic", "--case", CASE).code == 0
        assert (len(server.asked), len(set(server.asked))) == (3, 3), "its calls are the same, and not paid for again"
        assert sample.one("SELECT count(DISTINCT evaluation_id) FROM runs") == 2
        assert run(sample, "on_anthropic", "--case", CASE, "--fresh").code == 0
        assert len(server.asked) == 6


OTHERWISE = """
import json, os, urllib.request
for text in (os.urandom(9).hex(), "the same"):
    told = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(told).encode())
    urllib.request.urlopen(request)
print(12)
"""


def test_a_program_that_asks_otherwise_when_it_is_run_again_is_told(
    sample: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, own = list[tuple[str, str]](), tmp_path / "own"
    monkeypatch.setattr(Counters, "note_retry", lambda counts, *told: noted.append(told))
    own.mkdir()
    (own / "on_anthropic.py").write_text(OTHERWISE)
    with WireServer([Sent(message()), Sent(b"{}", 500), Sent(message()), Sent(message())]) as server:
        agents(sample, server.url, own)
        run(sample, "on_anthropic", "--case", CASE)
        assert not noted
        assert run(sample, "on_anthropic", "--case", CASE).code == 0
        assert len(server.asked) == 4
    assert [kind for kind, _ in noted] == ["changed"]


FAILS_ON_VOUCHERS = """
import sys
if "balanced" in sys.stdin.read():
    raise SystemExit("no\x1b[31m tools")
print(12)
"""


@pytest.mark.parametrize(
    ("file", "code", "said", "crashed"),
    [
        ("other.py", FAILS_ON_VOUCHERS, "can't open file", 3),
        ("on_openai.py", "import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'", 3),
        ("on_openai.py", "", "it called and changed nothing", 3),
        ("on_openai.py", FAILS_ON_VOUCHERS, "tools", 1),
    ],
    ids=["no file", "no import", "nothing", "one of three"],
)
def test_a_program_that_fails_is_wrong_and_the_run_says_why(
    sample: Lab, tmp_path: Path, file: str, code: str, said: str, crashed: int
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / file).write_text(code)
    agents(sample, "http://127.0.0.1:9", tmp_path / "own")
    told = run(sample, "on_openai")
    assert (told.code != 0) is (crashed == 3), told.text
    assert f"only {3 - crashed} of 3 answers can be read ({crashed} × crashed)" in told.text
    assert said in told.err and "options.command" in told.text
    turns = sample.sql("SELECT ended, task_correct FROM agent_turns WHERE failure_mode = 'crashed'")
    assert turns == [("crashed", False)] * crashed


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"options": {"command": ["no-such-agent"]}}, "'no-such-agent' cannot be started in the jail"),
        ({"options": {"command": ["python"], "folder": "nowhere"}}, "options.folder: there is no folder"),
        ({"batch": True, "options": {"command": ["python"]}}, "batch: means nothing to the provider 'command'"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(sample: Lab, told: dict[str, Any], why: str) -> None:
    sample.versions({"name": "own", "provider": "command", "model": "m", **told})
    said = run(sample, "own", "--case", CASE)
    assert said.code != 0 and why in said.text


def test_what_a_program_is_told_is_shown_beside_our_own_prompt(sample: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    inspecting._show_prompt(sample.workspace().suite("agents_sample"), "own")
    ours, _, theirs = capsys.readouterr().out.partition("`provider: command`")
    assert "with tools" in ours and "You work on a task in the current folder" in theirs and "[system]" not in theirs


def test_it_is_for_suites_of_agents_only(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "own", "provider": "command", "options": {"command": ["python"]}})
    said = lab.cli("run", "--suite", "small", "--model-version", "own", "--no-report")
    assert said.code != 0 and "is a program that works on tasks by itself" in said.text
