"""Servers of tools act in a world as everything there does; whatever they do wrong is one sentence and no hang."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import ErrorClass, ToolResult
from eval_pipeline.sandbox.limits import MIB
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.sandbox.world.worlds import OpenWorld, Servers, WorldLimits, Worlds

LIMITS = WorldLimits(told_bytes=1000, world_bytes=16 * MIB, world_files=500, processes=24, memory_bytes=256 * MIB)
SECRET = "planted: only the server may read this"
# It answers to what a test asks of it by the name of the tool.
SERVER = r"""
import json, os, socket, subprocess, sys, time

def say(**told):
    print(json.dumps({"jsonrpc": "2.0", **told}), flush=True)

def text(shown, **more):
    return {"content": [{"type": "text", "text": shown}], **more}

HOW = sys.argv[1] if sys.argv[1:] else ""
if HOW == "banner":
    print("Welcome to the notes!", flush=True)
if HOW == "mute":
    time.sleep(600)
if HOW == "dies":
    sys.exit("no licence for notes")
count = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    one, params = asked["id"], asked.get("params", {})
    if asked["method"] == "initialize":
        say(id=one, result={"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {}})
    elif asked["method"] == "tools/list":
        name, further = ("second", {}) if params else ("first", {"nextCursor": "2"})
        say(id=one, result={"tools": [{"name": name, "inputSchema": {"type": "object"}}], **further})
    else:
        name, given = params["name"], params["arguments"]
        if name == "count":
            count += 1
            say(method="notifications/progress", params={})
            say(id="mine", method="roots/list")
            say(id="ours", method="ping")
            sys.stderr.write("x" * 200_000)
            say(id=one, result=text(str(count)))
        elif name == "run":
            found = {}
            exec(given["code"], globals(), found)
            say(id=one, result=text(json.dumps(found)))
        elif name == "fails":
            say(id=one, result=text("there is no such note", isError=True))
        elif name == "long":
            say(id=one, result=text("é" * 5000))
        elif name == "mixed":
            image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
            linked = [{"type": "resource_link", "uri": "note:1"}, {"type": "resource", "resource": {"text": "inner"}}]
            say(id=one, result={"content": [image, *linked, {"kind": 1}, 7]})
        elif name == "structured":
            say(id=one, result={"content": [], "structuredContent": {"n": 3}})
        elif name == "raw":
            os.write(1, given["line"].encode() + b"\n")
        elif name == "forks":
            subprocess.Popen(["sleep", "600"])
            say(id=one, result=text("started"))
        elif name == "late":
            say(id=one, result=text("in time"))
            say(id=one, result=text("once more"))
        else:
            say(id=one, error={"code": -32602, "message": f"there is no {name}"})
"""
BROKEN: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "absent": (("notes-server",), ("'absent'", "notes-server", "No such file")),
    "banner": (("python", "server.py", "banner"), ("'banner'", "Welcome to the notes!", "standard output")),
    "dies": (("python", "server.py", "dies"), ("'dies'", "has ended", "no licence for notes")),
    "mute": (("python", "server.py", "mute"), ("no result within 1 s",)),
    "refuses": (("sh", "refuses.sh"), ("'refuses'", "refuses to begin", "too old")),
}


class Started:
    """Worlds with servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "world").mkdir()
        (folder / "world" / "notes.txt").write_text("first\n")
        (folder / "tools").mkdir()
        (folder / "tools" / "server.py").write_text(SERVER)
        (folder / "tools" / "secret.txt").write_text(SECRET)
        refusal = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "too old"}})
        (folder / "tools" / "refuses.sh").write_text(f"read line\necho '{refusal}'\nread line\n")

    def run(self, act: Callable[[OpenWorld], Any], command: tuple[str, ...] = ("python", "server.py")) -> Any:
        servers = Servers({"notes": (command, {"OWN": "given"})}, self.folder / "tools")
        return self.with_servers(act, servers)

    def with_servers(self, act: Callable[[OpenWorld], Any], servers: Servers) -> Any:
        async def together() -> Any:
            async with Worlds(LIMITS) as worlds, worlds.open(self.folder / "world", servers=servers) as world:
                return await act(world)

        return asyncio.run(together())

    def called(self, *calls: tuple[str, Any]) -> tuple[list[ToolResult], dict[str, ChangedFile]]:
        """Calls tools of the server, and of the world by its own names."""

        async def act(world: OpenWorld) -> tuple[list[ToolResult], dict[str, ChangedFile]]:
            told = []
            for name, given in calls:
                server = None if name in ("shell", "python") else "notes"
                told.append(await world.call(name, given, 10.0, server))
            return told, await world.end_state()

        found: tuple[list[ToolResult], dict[str, ChangedFile]] = self.run(act)
        return found


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Started:
    return Started(tmp_path_factory.mktemp("served"))


def test_a_server_acts_in_the_world_of_the_attempt(started: Started) -> None:
    write = "open('/world/made.txt', 'w').write(open('secret.txt').read())"
    told, changed = started.called(
        ("count", {}),
        ("shell", {"command": "echo second >> notes.txt"}),
        ("run", {"code": f"{write}; lines = open('/world/notes.txt').read(); own = os.environ['OWN']"}),
        ("count", {}),
        ("forks", {}),
        ("count", {}),
        ("fails", {}),
        ("nothing", {}),
        ("long", {}),
        ("mixed", {}),
        ("structured", {}),
        ("late", {}),
        ("count", {}),
    )
    by_name = dict(zip(("first", "", "ran", "", "", "third", "fails", "nothing", "long", "mixed"), told, strict=False))
    assert [told[at].text for at in (0, 3, 5, 12)] == ["1", "2", "3", "4"]  # what it keeps, it keeps
    assert json.loads(by_name["ran"].text) == {"lines": "first\nsecond\n", "own": "given"}
    assert (changed["made.txt"].body or b"").decode() == SECRET
    assert (by_name["fails"].text, by_name["fails"].error_class) == ("there is no such note", ErrorClass.OTHER)
    assert (by_name["nothing"].text, by_name["nothing"].error_class) == ("there is no nothing", ErrorClass.VALUE)
    cut = by_name["long"]
    assert cut.cut and cut.size == 10_000 and "10,000 bytes; the first 1,000 are shown" in cut.text
    hidden = "(something that cannot be shown)"
    assert by_name["mixed"].text.splitlines() == [
        "(image/png, which cannot be shown)",
        "note:1",
        "inner",
        hidden,
        hidden,
    ]
    assert told[10].text == '{"n": 3}'


def test_whatever_a_server_does_wrong_is_one_sentence(started: Started) -> None:
    lines = ("{broken", "[" * 100_000, '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "m"}}', "7")
    calls = [call for line in lines for call in (("raw", {"line": line}), ("count", {}))]
    told, _ = started.called(
        *calls, ("run", {"code": "os._exit(3)"}), ("count", {}), ("raw", {"line": "x" * (9 << 20)})
    )
    for result in (*told[:8:2], told[8], told[10]):
        assert result.error_class is ErrorClass.OTHER
        assert "the server 'notes' of this tool" in result.text and len(result.text) < 700
    for result in (*told[1:8:2], told[9]):
        assert result.text.splitlines() == ["(the server 'notes' of this tool was started anew)", "1"]
    assert "{broken" in told[0].text and "has ended" in told[8].text and "8,388,608 bytes" in told[10].text

    commands = {name: (command, {}) for name, (command, _) in BROKEN.items()}
    commands["pages"] = (("python", "server.py"), {})

    async def listed(world: OpenWorld) -> dict[str, Any]:
        return {name: await world.listed(name, 1.0 if name == "mute" else 10.0) for name in commands}

    found = started.with_servers(listed, Servers(commands, started.folder / "tools"))
    assert [tool["name"] for tool in found.pop("pages")] == ["first", "second"]
    for name, told_of in found.items():
        assert isinstance(told_of, str) and [word for word in BROKEN[name][1] if word not in told_of] == [], told_of


LOOK = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
said = []
def tried(name, work):
    try:
        said.append(f"{name}: {work()}")
    except Exception as error:
        pass
tried("tools", lambda: os.listdir("/tools") or 1 / 0)
tried("secret", lambda: open("/tools/secret.txt").read())
def there(one):
    try:
        os.kill(one, 0)
        return True
    except OSError:
        return False
tried("signals", lambda: [one for one in range(2, 400) if one != os.getpid() and there(one)] or 1 / 0)
tried("socket", lambda: socket.socket(socket.AF_UNIX))
tried("mount", lambda: libc.mount(b"tmpfs", b"/tools", b"tmpfs", 0, b"") and 1 / 0)
print(said)
"""


def test_neither_a_model_nor_a_server_gets_further_by_the_other(started: Started) -> None:
    confined = """
def tried(work):
    try:
        return work()
    except OSError as error:
        return None
upper = tried(lambda: os.listdir("/up") or None)
lower = tried(lambda: os.listdir("/low") or None)
changed = tried(lambda: open("/tools/server.py", "w"))
network = tried(lambda: socket.socket())
outside = tried(lambda: open("/scratch/for-others", "w").write("x"))
others = [one for one in os.listdir("/proc") if one.isdigit() and int(one) != os.getpid()]
del tried
"""
    told, changed = started.called(
        ("run", {"code": confined}),
        ("python", {"code": LOOK}),
        ("shell", {"command": "python /dev/fd/0 <<'E'\n" + LOOK + "\nE\nls /scratch /tools"}),
        ("python", {"code": "open('json.py', 'w').write('raise SystemExit')"}),
        ("run", {"code": "os._exit(1)"}),
        ("run", {"code": "import json; found = json.__file__"}),
    )
    assert json.loads(told[0].text) == {
        **dict.fromkeys(("upper", "lower", "changed", "network")),
        "outside": 1,  # its own, which ends with it
        "others": [],
    }
    assert told[1].text.strip() == "[]"
    assert [line for line in told[2].text.split() if line not in ("/scratch:", "/tools:")] == ["[]"]
    assert "/world" not in told[5].text  # files of the world are not its modules
    assert set(changed) == {"json.py"}
    assert (started.folder / "tools" / "server.py").read_text() == SERVER
