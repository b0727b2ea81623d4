"""Model-written Python: what it may do, what it may not reach, and that the next snippet is unharmed."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox import Failed, Limits, NoSandboxError, Outcome, PythonSandbox, Ran
from eval_pipeline.sandbox.tiers import ENVIRONMENT, TIERS

LIMITS = Limits(wall_s=2.0, memory_bytes=512 << 20)
Run = Callable[..., list[Outcome]]


@pytest.fixture(params=[tier.name for tier in TIERS])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs snippets one after the other in one sandbox of the tier."""
    (tier,) = [tier for tier in TIERS if tier.name == request.param]
    if (why_not := tier.why_not()) is not None:
        pytest.skip(f"{tier.name}: {why_not}")
    monkeypatch.setenv(ENVIRONMENT, tier.name)
    monkeypatch.setenv("PLANTED_KEY", "planted-in-the-environment")

    def run_all(*codes: str, tables: dict[str, Any] | None = None) -> list[Outcome]:
        async def together() -> list[Outcome]:
            async with PythonSandbox(LIMITS, zygotes=1) as box:
                assert box.tier == tier.name
                return [await box.run(code, tables) for code in codes]

        return asyncio.run(together())

    return run_all


def value(outcome: Outcome) -> object:
    assert isinstance(outcome, Ran), outcome
    assert outcome.result["kind"] == "value", outcome
    return outcome.result["value"]


def test_a_snippet_sees_its_table_and_leaves_its_result(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "sales.csv"
    table.write_text("region,amount\nnorth,1\nsouth,2\nnorth,4\n")
    (outcome,) = run("print('hello')\nresult = df.groupby('region').amount.sum()", tables={"sales": table})
    assert isinstance(outcome, Ran), outcome
    assert outcome.stdout == "hello\n"
    assert outcome.result["values"]["values"] == [5, 2]
    assert outcome.result["index"] == [{"name": "region", "dtype": "str", "values": ["north", "south"]}]
    assert 0 < outcome.seconds < LIMITS.wall_s


@pytest.mark.parametrize(
    ("code", "error_class", "line"),
    [
        ("x = (", ErrorClass.SYNTAX, 1),
        ("\nresult = pd.DataFrame({'a': [1]})['b']", ErrorClass.COLUMN, 2),
        ("result = 'a' + 1", ErrorClass.TYPE, 1),
        ("result = [1][2]", ErrorClass.INDEX, 1),
        ("result = pd.nothing", ErrorClass.ATTRIBUTE, 1),
        ("result = int('x')", ErrorClass.VALUE, 1),
        ("x = 1", ErrorClass.OTHER, None),
        ("while True: pass", ErrorClass.TIMEOUT, None),
        ("bytearray(8 << 30)", ErrorClass.MEMORY, 1),
        ("import sys\nsys.exit(0)", ErrorClass.OTHER, 2),
        ("def f(): return f()\nf()", ErrorClass.OTHER, 1),
    ],
)
def test_failures_have_their_class_and_line(run: Run, code: str, error_class: ErrorClass, line: int | None) -> None:
    (outcome,) = run(code)
    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.line) == (error_class, line), outcome


ATTACKS = {
    "shadow": "result = open('/etc/shadow').read()",
    "secret": "result = open(r'{secret}').read()",
    "environment": "import os; result = os.environ['PLANTED_KEY']",
    "parent's environment": "result = open('/proc/{pid}/environ', 'rb').read().hex()",
    "writing": "open(r'{folder}/written', 'w').write('x'); result = 1",
    "socket": "import socket; socket.socket(); result = 1",
    "loopback": "import socket; socket.create_connection(('127.0.0.1', 1), 1); result = 1",
    "fork": "import os; os.fork(); result = 1",
    "exec": "import subprocess; subprocess.run(['/bin/true']); result = 1",
    "signal": "import os; os.kill({pid}, 0); result = 1",
    "exit": "import os; os._exit(0)",
    "flood": "while True: print('A' * 100_000)",
    "deep result": "result = []\nfor _ in range(10_000): result = [result]",
    "huge result": "result = ['x' * 1_000_000] * 100",
    "an object": "result = object()",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_fail_and_the_next_snippet_is_unharmed(run: Run, tmp_path: Path, attack: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("planted-in-a-file")
    code = ATTACKS[attack].format(secret=secret, folder=tmp_path, pid=os.getpid())
    outcome, after = run(code, "result = 6 * 7")
    assert isinstance(outcome, Failed), outcome
    assert "planted" not in f"{outcome.message}{outcome.stdout}"
    assert not (tmp_path / "written").exists()
    assert value(after) == 42


def test_nothing_is_left_for_the_next_snippet(run: Run) -> None:
    left, found = run(
        "open('left', 'w').write('x')\npd.DataFrame.sum = None\nimport builtins\nbuiltins.len = None\nresult = 1",
        "import os\nresult = [os.listdir('.'), int(pd.DataFrame({'a': [1, 2]}).sum()['a']), len('ab')]",
    )
    assert value(left) == 1
    assert value(found) == {"t": "list", "v": [{"t": "list", "v": []}, 3, 2]}


def test_without_anything_that_holds_code_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def enter() -> None:
        async with PythonSandbox():
            pass

    monkeypatch.setenv(ENVIRONMENT, "chroot")
    with pytest.raises(NoSandboxError, match="allowed: bwrap, sandlock, unsafe"):
        asyncio.run(enter())
