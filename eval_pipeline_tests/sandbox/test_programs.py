"""Somebody's own program in a world: what it finds there, how it ends, and that nothing gets out."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.programs import OwnProgram, ProgramEnded
from eval_pipeline.sandbox.limits import MIB, Limits
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.sandbox.world.worlds import OpenWorld, WorldLimits, Worlds

SECRET = "planted: no program may read this"
LIMITS = WorldLimits(world_bytes=16 * MIB, world_files=500, processes=24, memory_bytes=128 * MIB)
TEXT = "Count the lines of notes.txt.\nSay how many."
HELLO = "import os, urllib.request\nprint(urllib.request.urlopen(os.environ['OPENAI_BASE_URL']).read().decode())\n"


def door_of(name: str) -> Callable[[socket.socket], AbstractAsyncContextManager[None]]:
    """What answers on the socket of a program's network: with a name, to every request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        body = path + b" by " + name.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def serve(listening: socket.socket) -> AsyncIterator[None]:
        listening.setblocking(False)
        async with await asyncio.start_server(answer, sock=listening):
            yield

    return serve


class Running:
    """Worlds of one folder with one folder of a program, and the event loop that they belong to."""

    def __init__(self, runner: asyncio.Runner, folder: Path) -> None:
        self.world, self.own, self.runner, self.worlds = folder / "world", folder / "own", runner, Worlds(LIMITS)
        runner.run(self.worlds.__aenter__())

    async def ran(
        self, command: Sequence[str], seconds: float = 30.0, name: str = "one", env: Mapping[str, str] | None = None
    ) -> tuple[ProgramEnded, dict[str, ChangedFile]]:
        program = OwnProgram(command, env or {}, self.own)
        async with self.worlds.open(self.world, program=program) as world:
            return await world.run(program, TEXT, seconds, door_of(name)), await world.end_state()

    def run(self, *command: str, **told: Any) -> tuple[ProgramEnded, dict[str, ChangedFile]]:
        return self.runner.run(self.ran(command, **told))

    def python(self, code: str, **told: Any) -> tuple[ProgramEnded, dict[str, ChangedFile]]:
        return self.run("python", "-c", code, **told)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "secret.txt").write_text(SECRET)
    for name in ("world", "own"):
        (folder / name).mkdir()
    (folder / "world" / "notes.txt").write_text("first\nsecond\n")
    (folder / "own" / "agent.py").write_text(
        "import sys, helper, os\nlines = len(open('notes.txt').readlines())\nopen('seen.txt', 'w').write(helper.WORD)\n"
        "open(os.path.expanduser('~/log'), 'w').write('x')\n"
        "print('argument:', sys.argv[1]); print('input:', sys.stdin.read()); print(lines)\n"
    )
    (folder / "own" / "helper.py").write_text("WORD = 'counted'\n")
    (folder / "own" / "run.sh").write_text("#!/bin/sh\nhead -1 notes.txt; echo $KIND $ANTHROPIC_API_KEY\n")
    (folder / "own" / "run.sh").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setenv("ANTHROPIC_API_KEY", SECRET)
        found = Running(runner, folder)
        yield found
        runner.run(found.worlds.__aexit__(None, None, None))


def test_a_program_finds_its_files_the_task_and_the_world(running: Running) -> None:
    ended, state = running.run("python", "agent.py", "do: {task}")
    assert (ended.status, ended.stopped, ended.errors, ended.answer) == (0, None, "", None)
    assert ended.output == f"argument: do: {TEXT}\ninput: {TEXT}\n2\n"
    assert {path: one.body for path, one in state.items()} == {"seen.txt": b"counted"}
    assert not (running.world / "seen.txt").exists()
    ended, state = running.run("run.sh", env={"KIND": "plain"})
    assert ended.output == "first\nplain sk-ant-api03-none\n" and state == {}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["sh", "-c", "echo yes; echo why >&2; exit 3"], (3, None, "yes\n", "why\n", None)),
        (["sh", "-c", "kill -9 $$"], (137, None, "", "", None)),
        (["sh", "-c", "printf '{\"answer\": 4}' > $EVAL_ANSWER"], (0, None, "", "", '{"answer": 4}')),
        (["sh", "-c", "ln -s /etc/passwd $EVAL_ANSWER"], (0, None, "", "", None)),
        (["sh", "-c", "mkdir $EVAL_ANSWER"], (0, None, "", "", None)),
        (["python", "-c", "import os; print(os.environ['PWD'], os.getcwd())"], (0, None, "/world /world\n", "", None)),
        (["sh", "-c", "printf '\\377'"], (0, None, "\ufffd", "", None)),
        (["sh", "-c", "kill -9 1; kill -9 -1 2> /dev/null; echo alive"], (0, None, "alive\n", "", None)),
    ],
)  # fmt: skip
def test_how_a_program_ends_is_told(running: Running, command: list[str], found: tuple[Any, ...]) -> None:
    ended, _ = running.run(*command)
    assert (ended.status, ended.stopped, ended.output, ended.errors, ended.answer) == found


NAMES = """
import ctypes, getpass, os, pathlib, pwd, socket
print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir == str(pathlib.Path.home()))
for name in ("localhost", socket.gethostname()):
    with socket.create_server((name, 0)) as server, socket.create_connection(server.getsockname()):
        print("reached")
print("ends with its parent", ctypes.CDLL(None).prctl(1, 15))
try:
    print(socket.getaddrinfo("example.com", 443))
except socket.gaierror:
    print("unknown")
"""


def test_it_knows_itself_and_its_machine_and_no_other(running: Running) -> None:
    ended, _ = running.python(NAMES)
    assert (ended.output, ended.errors) == ("nobody True\nreached\nreached\nends with its parent 0\nunknown\n", "")


def test_of_a_flood_of_output_the_end_is_kept(running: Running) -> None:
    ended, _ = running.run("sh", "-c", "head -c 30000000 /dev/zero | tee /dev/stderr | tr '\\0' x; echo; echo last")
    assert ended.status == 0 and ended.output.endswith("x\nlast\n")
    assert (len(ended.output), len(ended.errors)) == (1 << 20, 1 << 16)


@pytest.mark.parametrize(
    ("command", "stopped"),
    [
        ("sleep 300 & sleep 300", "wall"),
        ("f() { f | f & }; f; sleep 300", "threads"),
        ("exec python -c 'a = []\nwhile True: a.append(bytearray(10**7))'", "memory"),
        (
            "exec python -c 'import mmap\nm = [mmap.mmap(-1, 9**8) for _ in range(9)]\n"
            "for one in m: one[:] = bytes(9**8)'",
            "memory",
        ),
    ],
)
def test_what_takes_too_much_is_ended_with_all_that_it_has_started(
    running: Running, command: str, stopped: str
) -> None:
    ended, _ = running.run("sh", "-c", command, seconds=0.5 if stopped == "wall" else 60.0)
    assert (ended.status, ended.stopped) == (-9, stopped)


def test_a_full_world_is_the_programs_own_problem(running: Running) -> None:
    fill = "head -c 100000000 /dev/zero > {} || true"
    command = "; ".join([fill.format("big"), fill.format("~/big"), "rm big ~/big; echo 1 > one.txt"])
    ended, state = running.run("sh", "-c", command)
    assert ended.status == 0 and {path: one.body for path, one in state.items()} == {"one.txt": b"1\n"}


def test_what_cannot_be_started_is_told_in_a_sentence(running: Running) -> None:
    with pytest.raises(UsageError, match="'no-such-agent' cannot be started in the jail: No such file"):
        running.run("no-such-agent")


def test_programs_at_the_same_time_reach_their_own_models_only(running: Running) -> None:
    async def both() -> list[tuple[ProgramEnded, Any]]:
        return await asyncio.gather(*(running.ran(["python", "-c", HELLO], name=name) for name in ("one", "two")))

    assert [ended.output for ended, _ in running.runner.run(both())] == ["/v1 by one\n", "/v1 by two\n"]


BESIDE = "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '60'])\nopen('own.txt', 'w').write('mine')\n"
BESIDE += "while not os.path.exists('go'): time.sleep(0.01)\nprint(child.poll(), open('theirs.txt').read())"


def test_tools_are_called_beside_a_program(running: Running) -> None:
    """They see what it writes and it what they write; what they leave running is ended, and what it has started not."""
    calls = [
        ("shell", {"command": "while ! cat own.txt 2> /dev/null; do sleep 0.01; done; echo theirs > theirs.txt"}),
        ("python", {"code": "import os, time\nx = 1\nif os.fork() == 0: time.sleep(4119)"}),
        ("python", {"code": "x + 1"}),
        ("write_file", {"path": "go", "text": ""}),
    ]
    told: list[str] = []

    async def beside() -> ProgramEnded:
        program = OwnProgram(["python", "-c", BESIDE], {}, running.own)
        async with running.worlds.open(running.world, program=program) as world:

            @asynccontextmanager
            async def serve(listening: socket.socket) -> AsyncIterator[None]:
                async def call_all() -> None:
                    told.extend([(await world.call(*call, 20.0)).text for call in calls])

                task = asyncio.get_running_loop().create_task(call_all())
                yield
                await task

            ended = await world.run(program, TEXT, 60.0, serve)
            assert (await world.call("python", {"code": "x + 2"}, 20.0)).text == "3\n"
            assert {*(await world.end_state())} == {"own.txt", "theirs.txt", "go"}
            return ended

    ended = running.runner.run(beside())
    assert (ended.status, ended.output) == (0, "None theirs\n\n"), ended.errors
    assert [one.strip() for one in told[:3]] == ["mine", "", "2"]


def test_a_call_beside_a_program_takes_no_longer_than_it_may_run(running: Running) -> None:
    async def slow() -> tuple[ProgramEnded, list[Any]]:
        program, found = OwnProgram(["sleep", "60"], {}, running.own), list[Any]()
        async with running.worlds.open(running.world, program=program) as world:

            @asynccontextmanager
            async def serve(listening: socket.socket) -> AsyncIterator[None]:
                call = world.call("shell", {"command": "sleep 5; echo late"}, 60.0)
                task = asyncio.get_running_loop().create_task(call)
                yield
                found.append(await task)

            return await world.run(program, TEXT, 0.5, serve), found

    ended, (result,) = running.runner.run(slow())
    assert ended.stopped == "wall" and result.error_class is not None


def test_a_call_that_is_heard_only_after_the_program_takes_no_longer_than_was_left() -> None:
    """A keeper that answers both at once stands for one that hears the call last."""

    async def drain() -> None:
        pass

    async def late() -> Any:
        reader, sent = asyncio.StreamReader(), list[bytes]()
        kept: Any = SimpleNamespace(write=sent.append, drain=drain)
        with socket.socket() as door:
            world = OpenWorld(reader, kept, LIMITS, Limits(), door)
            ran = asyncio.ensure_future(world._ran(0.5))
            await asyncio.sleep(0)
            call = asyncio.ensure_future(world.call("shell", {"command": "sleep 60"}, 60.0))
            await asyncio.sleep(0)
            for told in (b'{"ran": {}}', b'{"text": ""}'):
                reader.feed_data(struct.pack("<II", len(told), 0) + told)
            await asyncio.gather(ran, call)
        return json.loads(sent[0][8:])["seconds"]

    assert 0.0 <= asyncio.run(late()) <= 0.5


def test_who_does_not_wait_any_more_ends_the_program(running: Running) -> None:
    async def leave() -> None:
        began = asyncio.Event()

        @asynccontextmanager
        async def serve(listening: socket.socket) -> AsyncIterator[None]:
            began.set()
            yield

        program = OwnProgram(["sleep", "4117.5"], {}, running.own)
        async with running.worlds.open(running.world, program=program) as world:
            task = asyncio.get_running_loop().create_task(world.run(program, TEXT, 300.0, serve))
            await began.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    running.runner.run(leave())
    assert gone("4117.5")


def gone(marker: str) -> bool:
    """Whether no process has a word in its command, after those that are being ended have."""
    left = [one for one in psutil.process_iter(["cmdline"]) if marker in (one.info["cmdline"] or ())]
    return not psutil.wait_procs(left, 30)[1]
