"""Files that no reader should trust, by families; and a process that reads one after the other.

Run as a module it reads `[target, file]` lines from standard input, and answers each with what it said.
"""

import gzip
import json
import os
import random
import socket
import sqlite3
import sys
import traceback
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

from eval_pipeline.core.errors import EvalError, InputError
from eval_pipeline.core.home import find_home
from eval_pipeline.core.reading import arms_length
from eval_pipeline.operations.imports.importing import import_at_arms_length
from eval_pipeline.operations.recorded.importing import import_predictions
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import find_suites
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.forked import run_at_arms_length
from eval_pipeline_tests.support import SHIPPED

IMPORTS = {
    "convfinqa": ".json", "spider": ".json", "bird": ".json", "defog": ".csv", "querycraft": ".json",
    "kaggledbqa": ".json", "livesqlbench": ".jsonl",
    "dabench": ".jsonl", "pandaseval": ".jsonl", "bigcodebench": ".jsonl", "ds1000": ".jsonl", "statgpt": ".yaml",
}  # fmt: skip
IN_SUITES = {
    "header": ("finqa", "suite.yaml", "finqa_sample/suite.yaml"),
    "yaml": ("finqa", "cases/c.yaml", "finqa_sample/cases/alder_freight_2021_fuel.yaml"),
    "json": ("finqa", "cases/c.json", None),
    "jsonl": ("finqa", "cases/c.jsonl", None),
    "script": ("sql", "databases/d/database.sql", "sql_sample/databases/shop/database.sql"),
    "sqlite": ("sql", "databases/d.sqlite", None),
    "columns": ("sql", "databases/d/columns.yaml", "sql_sample/databases/shop/columns.yaml"),
    "spider tables": ("sql", "databases/tables.json", None),
    "sdmx-ml": ("sdmx", "structures/s.xml", "sdmx_sample/structures/national_accounts.xml"),
    "sdmx-json": ("sdmx", "structures/s.json", "sdmx_sample/structures/merchandise_trade.json"),
    "terms": ("sdmx", "structures/s.csv", None),
    "csv": ("pandas", "tables/t.csv", "pandas_sample/tables/shops.csv"),
    "parquet": ("pandas", "tables/t.parquet", "pandas_sample/tables/sales.parquet"),
}
"""Target → track, place in the suite, and a sound file of that kind among what is shipped."""
TARGETS = (*IN_SUITES, *(f"import {form}" for form in IMPORTS), "predictions", "model versions")
Make = Callable[[Path, random.Random, bytes], None]


def nested(path: Path, rng: random.Random, _: bytes) -> None:
    before = rng.choice(["", "id: x\nturns: ", '{"id": "x", "turns": '])
    opening = rng.choice(["[", "{a: ", "- ", "? ", '{"a":', '[{"a":', "<a>", "(", "SELECT ("])
    path.write_text(before + opening * rng.choice([300, 5_000, 50_000, 500_000]))


def indented(path: Path, rng: random.Random, _: bytes) -> None:
    path.write_text("\n".join(" " * depth + "a:" for depth in range(rng.choice([200, 3_000]))))


def laughing(path: Path, rng: random.Random, _: bytes) -> None:
    if path.suffix == ".xml":
        entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))
        path.write_text(f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]><x>&e29;</x>')
        return
    lines = ["a0: &a0 [ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, rng.choice([8, 40]))]
    path.write_text("\n".join(lines))


def circular(path: Path, rng: random.Random, _: bytes) -> None:
    path.write_text(rng.choice(["&a [*a]", "id: &x\n  y: *x", "- &b {c: *b}", "*nobody", "a: &a\n  <<: *a"]))


def huge_scalar(path: Path, rng: random.Random, _: bytes) -> None:
    size = rng.choice([1_000_000, 70_000_000])
    body = rng.choice(["a", "9", '"' + "\\u0041", "\u00e9"])
    path.write_text(rng.choice(["id: ", '{"id": ', ""]) + body * (size // len(body)))


ODD = (
    "2026-99-99", "!!python/object/apply:os.system ['true']", "!!binary 'x'", "!!float x", "1" * 5_000, "!!set {a: b}",
    "!!bool maybe", "!!timestamp foo", "!!int x", "!!map [a]",
    "0o9", "1:99:99", '"\\ud800"', '"\\x00"', "!unknown x", ".nan", "-.inf", "~", "\t- tab",
)  # fmt: skip


def odd_scalar(path: Path, rng: random.Random, _: bytes) -> None:
    value = rng.choice(ODD)
    path.write_text(f"id: {value}\nname: {value}\nmodel_versions: {value}\n")


def encoded(path: Path, rng: random.Random, sound: bytes) -> None:
    text = sound.decode(errors="replace") or 'id: "Zürich – 東京"\n'
    path.write_bytes(text.encode(rng.choice(["utf-16", "utf-32", "utf-16-be", "cp037"]), "replace") + b"\xff\xfe")


def noise(path: Path, rng: random.Random, _: bytes) -> None:
    few = (b"", b"\0" * 4_096, b"\n" * 9, rng.randbytes(2_000), b"\x1b]0;x\x07", b"{", b"null", b"[1, 2")
    path.write_bytes(rng.choice(few))


def truncated(path: Path, rng: random.Random, sound: bytes) -> None:
    aside = path.with_name("aside")
    kind = rng.choice(["gzip", "zip", "sqlite", "itself"])
    if kind == "gzip":
        aside.write_bytes(gzip.compress(rng.randbytes(9_000)))
    elif kind == "zip":
        with zipfile.ZipFile(aside, "w") as archive:
            archive.writestr("xl/workbook.xml", "<x/>" * 999)
    elif kind == "sqlite":
        with closing(sqlite3.connect(aside)) as connection:
            connection.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, hex(randomblob(9000)));")
    else:
        aside.write_bytes(sound or b'{"id": "x", "turns": [{"question": "')
    data = aside.read_bytes()
    aside.unlink()
    path.write_bytes(data[: rng.randrange(len(data) // 4, 3 * len(data) // 4)])


def special(path: Path, rng: random.Random, _: bytes) -> None:
    match rng.choice(["fifo", "nowhere", "loop", "folder", "socket", "zeros", "sparse"]):
        case "fifo":
            os.mkfifo(path)
        case "nowhere":
            path.symlink_to(path.with_name("is-not-there"))
        case "loop":
            path.symlink_to(path.with_name("loop"))
            path.with_name("loop").symlink_to(path)
        case "folder":
            path.mkdir()
        case "socket":
            with closing(socket.socket(socket.AF_UNIX)) as made:
                here = os.open(path.parent, os.O_RDONLY)  # a path may be too long for a socket
                made.bind(f"/proc/self/fd/{here}/{path.name}")
                os.close(here)
        case "zeros":
            path.symlink_to("/dev/zero")
        case "sparse":
            with path.open("wb") as file:
                file.truncate(2 << 30)


def changed(path: Path, rng: random.Random, sound: bytes) -> None:
    data = bytearray(sound or b"id: x\nturns: [{question: q, program: '1', answer: 1}]\n")
    for _ in range(rng.choice([1, 20])):
        place = rng.randrange(len(data) + 1)
        data[place : place + rng.choice([0, 1, 40])] = rng.randbytes(rng.choice([0, 1, 3]))
    path.write_bytes(bytes(data))


FAMILIES: tuple[Make, ...] = (
    nested, indented, laughing, circular, huge_scalar, odd_scalar, encoded, noise, truncated, special, changed,
)  # fmt: skip
MAY_BE_READ = {changed, encoded, odd_scalar, circular, indented, laughing, noise, huge_scalar, nested}
"""Families of which a target may make something (`null` is an empty list of terms); the others have to be refused."""


def place_of(target: str) -> str:
    """The file's place below the folder of the target."""
    if target in IN_SUITES:
        return IN_SUITES[target][1]
    return f"source{IMPORTS.get(target.removeprefix('import '), '.jsonl' if target == 'predictions' else '.yaml')}"


def sound_file(target: str) -> bytes:
    """A sound file for a target; empty where none is shipped."""
    name = IN_SUITES[target][2] if target in IN_SUITES else None
    return b"" if name is None else (SHIPPED / "suites" / name).read_bytes()


def put(folder: Path, target: str, make: Make, rng: random.Random) -> Path:
    """Makes the file, and a suite around it where it belongs into one."""
    path = folder / place_of(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if target in IN_SUITES:
        track = IN_SUITES[target][0]
        if target != "header":
            (folder / "suite.yaml").write_text(f"name: {folder.name}\nversion: '1'\ntrack: {track}\ncases: cases/*\n")
        (folder / "cases").mkdir(exist_ok=True)
        if path.parent.name != "cases":
            (folder / "cases" / "sound.yaml").write_text("id: x\n")
        if target == "columns":
            (path.parent / "database.sql").write_bytes(sound_file("script"))
    make(path, rng, sound_file(target))
    return path


def said_of(target: str, path: Path) -> Iterator[str]:
    """What a reader says of a file; nothing where it could make something of it."""
    workspace = Workspace(find_home())
    if target in IN_SUITES:
        depth = place_of(target).count("/") + 1
        folder = path.parents[depth - 1]
        source = find_suites([folder.parent]).get(folder.name)
        if source is None:
            yield f"{path}: there is no suite"  # a link that leads nowhere
        else:
            yield from map(str, source.problems or read_suite(source).problems)
    elif target == "predictions":
        import_predictions(workspace, path, "healthy", f"p-{path.parent.name}")
    elif target == "model versions":
        home = workspace.home
        aside = home.data / "model_versions.yaml"
        aside.unlink(missing_ok=True)
        aside.symlink_to(path)
        try:
            list(Workspace(home).model_versions)
        finally:
            aside.unlink()
    else:
        import_at_arms_length(target.removeprefix("import "), path, f"i_{path.parent.name}", None, [])


def read_all() -> None:
    """Reads what standard input names, and a healthy suite beside each."""
    for line in sys.stdin:
        target, name = json.loads(line)
        try:
            said, fault = list(said_of(target, Path(name))), ""
        except InputError as error:
            said, fault = [str(problem) for problem in error.problems], ""
        except EvalError as error:
            said, fault = [str(error)], ""
        except Exception:
            said, fault = [], traceback.format_exc()
        healthy = len(read_suite(Workspace(find_home()).suites["healthy"]).cases)
        sys.stdout.write(json.dumps([said, fault, healthy]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with patch.object(arms_length, "_run", run_at_arms_length):
        read_all()
