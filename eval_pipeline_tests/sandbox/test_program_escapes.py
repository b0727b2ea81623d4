"""What programs try to get out of the jail, and that nothing does."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest

from eval_pipeline.core.system.programs import OwnProgram
from eval_pipeline_tests.sandbox.test_programs import SECRET, TEXT, Running, door_of, running

__all__ = ["running"]

ESCAPES = {
    "a server of the machine": "reached(lambda: socket.create_connection(('127.0.0.1', PORT), 2))",
    "a server of the machine by its other address": "reached(lambda: socket.create_connection((ADDRESS, PORT), 2))",
    "the internet": "reached(lambda: socket.create_connection(('1.1.1.1', 53), 2))",
    "names": "reached(lambda: socket.getaddrinfo('example.com', 80))",
    "UDP": "reached(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('1.1.1.1', 53)))",
    "raw packets": "reached(lambda: socket.socket(type=socket.SOCK_RAW))",
    "other families": "[reached(lambda: socket.socket(family)) for family in (16, 17, 21, 29, 31, 38, 40)]",
    "a Unix socket of the machine": "reached(lambda: socket.socket(1).connect('\\0planted' + str(PORT)))",
    "the network of the machine": "reached(lambda: os.open('/proc/1/ns/net', 0))",
    "another namespace": "[reached(lambda: checked(libc.unshare(flag))) for flag in (0x10000000, 0x40000000, 0x20000)]",
    "a mount": "reached(lambda: checked(libc.mount(b'none', b'/world', b'tmpfs', 0, None)))",
    "an unmount": "reached(lambda: checked(libc.umount2(b'/world', 2)))",
    "tracing": "reached(lambda: checked(libc.ptrace(16, 1, 0, 0)))",
    "memory of others": "[reached(lambda: open(f'/proc/{pid}/mem', 'rb').read(9)) for pid in pids() - {os.getpid()}]",
    "environments": "[reached(lambda: open(f'/proc/{pid}/environ').read()) for pid in pids() - {os.getpid()}]",
    "files of the machine": "reached(lambda: open(SECRET_FILE)); reached(lambda: os.listdir('/root/.ssh'))",
    "links to them": "os.symlink(SECRET_FILE, 'mine'); reached(lambda: open('mine'))",
    "roots of others": "[reached(lambda: open(f'/proc/{pid}/root{SECRET_FILE}')) for pid in pids()]",
    "what is below the overlay": "print('ESCAPED' if os.listdir('/low') + os.listdir('/up') else '')",
    "its own files": "reached(lambda: open('/agent/agent.py', 'a')); reached(lambda: os.remove('/agent/helper.py'))",
    "the system's files": "reached(lambda: open('/usr/bin/planted', 'w')); reached(lambda: open('/box/inside/x', 'w'))",
    "gold of the samples": "[print('ESCAPED', top) for top in glob.glob('/packages/*/eval_pipeline/*')]",
    "descriptors": "print('ESCAPED' if set(os.listdir('/proc/self/fd')) - set('0123') else '')",
    "the sealed task": "reached(lambda: os.write(0, b'x')); reached(lambda: os.truncate('/proc/self/fd/0', 9))",
    "time after the end": "[os.setsid() or time.sleep(4118) for _ in '12' if os.fork() == 0]",
    "memory that outlives it": "[reached(lambda: checked(call())) for call in (lambda: libc.shmget(0, 9, 896),)]",
    "keys of the kernel": "[reached(lambda: checked(libc.syscall(call, 0, 0, 0))) for call in (248, 250, 321, 298)]",
}  # fmt: skip
ESCAPES |= {
    "the internet by IPv6": """
reached(lambda: socket.create_connection(("2606:4700::1111", 53), 2))
reached(lambda: socket.create_connection(("::1", PORT), 2))
""",
    "datagrams of the machine": """
for name in ("127.0.0.1", ADDRESS):
    reached(lambda: asked_by_udp((name, PORT)))
""",
    "servers of names": """
found = open("/etc/resolv.conf").read().split() if os.path.exists("/etc/resolv.conf") else []
for name in [*found[1::2], "127.0.0.53", "8.8.8.8"]:
    reached(lambda: asked_by_udp((name, 53)))
""",
    "a Unix socket in its world": """
for path in ["/world/socket", "/low/socket", OWN]:
    reached(lambda: socket.socket(1).connect(path))
""",
    "another attempt": """
for name in ("127.0.0.1", ADDRESS):
    reached(lambda: socket.create_connection((name, 4118), 2))
reached(lambda: socket.socket(1).connect("\\0other"))
reached(lambda: open("of-another.txt"))
""",
    "its parents": """
for pid in (1, os.getppid()):
    for name in ("cwd", "exe", "fd/3"):
        reached(lambda: os.readlink(f"/proc/{pid}/{name}"))
for pid in set(range(2, 400)) - pids():
    reached(lambda: os.kill(pid, 0))
print("ESCAPED" if len(pids()) > 2 else "")
""",
    "settings of the kernel": """
for path in glob.glob("/proc/sys/kernel/*") + ["/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/self/uid_map"]:
    reached(lambda: open(path, "w").write("1"))
""",
    "devices": """
for path in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/tty"):
    reached(lambda: open(path, "rb").read(1))
reached(lambda: os.mknod("disk", 0o60600, os.makedev(8, 0)))
""",
    "newer calls": """
calls = [(425, 8, 0), (428, -100, b"/", 1), (430, b"tmpfs", 0), (438, 3, 0, 0), (304, -1, 0, 0), (323, 0)]
for call in [*calls, (310, 1, 0, 0, 0, 0, 0), (312, 1, 1, 0, 0, 0)]:
    reached(lambda: checked(libc.syscall(*call)))
""",
    "other users": """
for call in (os.setuid, os.setgid, lambda one: os.setgroups([one])):
    reached(lambda: call(0))
print("ESCAPED" if os.popen("su -c id 2>&1; sudo -n id 2>&1").read().startswith("uid=0(root)") else "")
""",
    "the machine's name and clock": """
reached(lambda: socket.sethostname("x"))
reached(lambda: time.clock_settime(0, 0))
for call in (103, 167, 169, 175):
    reached(lambda: checked(libc.syscall(call, 3, 0, 0)))
""",
    "a terminal": """
import fcntl, pty
for file in (lambda: 0, lambda: pty.openpty()[1]):
    reached(lambda: fcntl.ioctl(file(), 0x5412, b"x"))
""",
    "gold anywhere": """
for start in ("/world", "/agent", "/packages", "/box", "/tmp", "/scratch", "/tools", "/root", "/home"):
    for top, _, names in os.walk(start):
        for name in names:
            if name in ("suite.yaml", "world.yaml") or name.startswith("journal.sqlite"):
                print("ESCAPED", top, name)
""",
}
PRELUDE = """
import ctypes, glob, os, socket, sys, time
def asked_by_udp(address):
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        asking.settimeout(0.3)
        asking.sendto(b'x' * 20, address)
        asking.recv(9)
libc = ctypes.CDLL(None, use_errno=True)
def reached(work):
    try: work()
    except (OSError, ValueError): return
    print('ESCAPED')
def checked(returned):
    if returned < 0: raise OSError(ctypes.get_errno(), 'refused')
def pids(): return {int(name) for name in os.listdir('/proc') if name.isdigit()}
"""


OTHER = """
import os, socket, time, urllib.request
kept = [socket.create_server(("0.0.0.0", 4118)), socket.socket(socket.AF_UNIX)]
kept[1].bind("\\0other")
kept[1].listen()
open("of-another.txt", "w").write("x")
urllib.request.urlopen(os.environ["OPENAI_BASE_URL"])
time.sleep(600)
"""
"""Another attempt in the same world, which says by its door that all is there."""


@contextmanager
def servers_of_the_machine(folder: Path) -> Iterator[tuple[int, list[socket.socket]]]:
    """A port with servers of all kinds, of which no program may reach any, and their sockets."""
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        port = first.getsockname()[1]
        kinds: list[tuple[int, int, object]] = [
            (socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", port)),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0planted{port}"),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "socket")),
        ]
        if Path("/proc/net/if_inet6").exists():
            kinds.append((socket.AF_INET6, socket.SOCK_STREAM, ("::1", port)))
        stack.callback(lambda: (folder / "socket").unlink())
        found = [first]
        for family, kind, address in kinds:
            found.append(stack.enter_context(socket.socket(family, kind)))
            found[-1].bind(address)  # type: ignore[arg-type]
            if kind == socket.SOCK_STREAM:
                found[-1].listen()
        for one in found:
            one.setblocking(False)
        yield port, found


def came(listening: socket.socket) -> bool:
    """Whether anybody has reached a socket."""
    try:
        listening.accept() if listening.type == socket.SOCK_STREAM else listening.recv(1)
    except BlockingIOError:
        return False
    return True


@asynccontextmanager
async def another(running: Running) -> AsyncIterator[None]:
    """Another attempt, as long as this lasts."""
    begun, answering = asyncio.Event(), door_of("other")

    @asynccontextmanager
    async def serve(listening: socket.socket) -> AsyncIterator[None]:
        async with answering(listening):
            begun.set()
            yield

    program = OwnProgram(["python", "-c", OTHER], {}, running.own)
    async with running.worlds.open(running.world, program=program) as world:
        task = asyncio.get_running_loop().create_task(world.run(program, TEXT, 300.0, serve))
        await begun.wait()
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_gets_out_of_a_program(running: Running, name: str) -> None:
    with servers_of_the_machine(running.world) as (port, sockets):
        places = {"PORT": port, "ADDRESS": own_address(), "SECRET_FILE": str(running.world.parent / "secret.txt")}
        places |= {"OWN": str(running.world / "socket")}
        told = "".join(f"{key} = {value!r}\n" for key, value in places.items())
        code = f"{PRELUDE}{told}{ESCAPES[name]}\nprint('done')"

        async def tried() -> Any:
            async with another(running) if name == "another attempt" else nullcontext():
                return await running.ran(["python", "-c", code], env={"MARK": name})

        ended, _ = running.runner.run(tried())
        assert not [one for one in sockets if came(one)]
    assert (ended.status, ended.output.split()[-1]) == (0, "done"), ended.errors
    assert "ESCAPED" not in ended.output and SECRET not in ended.output
    assert (running.own / "agent.py").read_text().startswith("import sys, helper")
    assert not [one for one in psutil.process_iter(["environ"]) if (one.info["environ"] or {}).get("MARK") == name]


def own_address() -> str:
    """An address of this machine that is not on loopback, if it has one."""
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(asking.getsockname()[0])


def test_the_machine_is_found_by_the_same_words_outside() -> None:
    """The table would show an escape if there was one."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        code = f"{PRELUDE}reached(lambda: socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}), 2))"
        with os.popen(f"python3 - <<'END'\n{code}\nEND") as said:
            assert said.read() == "ESCAPED\n"
