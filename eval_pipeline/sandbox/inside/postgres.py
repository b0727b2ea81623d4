"""Databases of PostgreSQL: a server that runs while a call is answered, in a process that sees nothing of the world.

Its files are in `FOLDER`, through an overlay as the world's are. Who asks is the role that owns the databases, or one
that only reads; neither may do anything outside of them. What a database holds is told as a script, as `pg_dump`
writes it: the same for the same contents, whatever the files look like.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from .child import Told
from .exchange import Exchange
from .looked import tabled
from .postgres_client import GivenRow, GivenRows, PostgresClient, PostgresError, plain_rows
from .postgres_objects import objects

LOWER, UPPER, FOLDER = "/postgres-low", "/postgres-up", "/postgres"
DATA, DUMPS, STATES, LOOKED = f"{FOLDER}/data", f"{FOLDER}/dumps", f"{FOLDER}/states", f"{FOLDER}/looked"
USERS, _SOCKETS = "/scratch/passwd", "/scratch"
_SOCKET = f"{_SOCKETS}/.s.PGSQL.5432"
_SUPERUSER, _OWNER, _READER = "postgres", "owner", "reader"
_SETTINGS = {
    "autovacuum": "off",
    "dynamic_shared_memory_type": "posix",
    "fsync": "off",  # a process that is killed loses nothing, and the machine's memory is all that there is
    "listen_addresses": "",
    "max_connections": "8",
    "max_logical_replication_workers": "0",
    "max_parallel_workers": "0",
    "max_wal_senders": "0",
    "max_worker_processes": "0",
    "shared_buffers": "16MB",
    "timezone": "UTC",
    "unix_socket_directories": _SOCKETS,
    "wal_level": "minimal",
}
_INITDB = ("-U", _SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
_DUMP = "--inserts --rows-per-insert=100 --no-owner --no-privileges --no-comments --no-blobs --no-sync".split()
_START_S, _STOP_S = 60.0, 30.0
_STARTING = "57P03"
_TABLES = """
    SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm', 'p') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
    ORDER BY 1, 2
"""


def place(name: str) -> str:
    """Returns where a database is in an end state: no path of a world."""
    return f"{FOLDER}/{name}.sql"


class ServerError(Exception):
    """The server cannot be started or does not do what it has to."""


@contextmanager
def server(programs: str) -> Iterator[None]:
    """Runs the server; databases that are to be as an earlier end state has them are made so."""
    with suppress(FileNotFoundError):  # of a server that was killed; its number may be another's now
        os.unlink(f"{DATA}/postmaster.pid")
    command = [f"{programs}/postgres", "-D", DATA]
    command += [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    with open(f"{_SOCKETS}/log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={"LC_ALL": "C"}, cwd="/")
    try:
        _wait(process)
        for name in os.listdir(STATES) if os.path.isdir(STATES) else ():
            _restore(name)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Waits until the server answers."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            PostgresClient(_SOCKET, _SUPERUSER, "template1").close()
        except (PostgresError, OSError) as error:
            if isinstance(error, PostgresError) and error.args[1] not in (_STARTING, "57P02"):
                raise ServerError(f"PostgreSQL refuses to answer: {error.args[0]}") from error
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"PostgreSQL does not start: {_last_words()}") from error
            time.sleep(0.005)
        else:
            return


def _last_words() -> str:
    with open(f"{_SOCKETS}/log", encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    return " ".join(lines[-2:])[-300:] or "it says nothing"


def run(user: str, database: str, query: str) -> None:
    """Runs statements and drops what they give."""
    client = PostgresClient(_SOCKET, user, database)
    try:
        client.run(query, lambda rows, found: None)
    finally:
        client.close()


def make(programs: str, scripts: dict[str, Sequence[str]]) -> None:
    """Makes databases from scripts, as their owner runs them. Raises a ServerError that names the script."""
    with open(USERS, "w", encoding="utf-8") as file:  # initdb asks for its user's name
        file.write(f"nobody:x:{os.getuid()}:{os.getgid()}::/:\n")
    made = subprocess.run(
        [f"{programs}/initdb", "-D", DATA, *_INITDB], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False
    )
    if made.returncode:
        raise ServerError(f"PostgreSQL cannot make a database: {' '.join(made.stderr.split())[-300:]}")
    os.makedirs(DUMPS)
    with server(programs):
        run(_SUPERUSER, "template1", f"CREATE ROLE {_OWNER} LOGIN BYPASSRLS")
        run(_SUPERUSER, "template1", f"CREATE ROLE {_READER} LOGIN BYPASSRLS IN ROLE pg_read_all_data")
        run(_SUPERUSER, "template1", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        run(_SUPERUSER, "template1", "DROP DATABASE postgres")
        for name, texts in scripts.items():
            _create(name)
            for number, text in enumerate(texts):
                try:
                    run(_OWNER, name, text)
                except PostgresError as error:
                    raise ServerError(f"script {number + 1} of the database '{name}' fails: {error.args[0]}") from error
            run(_SUPERUSER, name, "VACUUM FREEZE ANALYZE")
        for name in scripts:
            dump(programs, name)


def _create(name: str) -> None:
    # One after the other, as none of them may be in a transaction.
    for text in (
        f"DROP DATABASE IF EXISTS {quoted(name)}",
        f"CREATE DATABASE {quoted(name)} OWNER {_OWNER}",
        f"REVOKE TEMPORARY ON DATABASE {quoted(name)} FROM PUBLIC",
    ):
        run(_SUPERUSER, "template1", text)
    run(_SUPERUSER, name, f"ALTER SCHEMA public OWNER TO {_OWNER}")


def _restore(name: str) -> None:
    path = f"{STATES}/{name}"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    _create(name)
    run(_OWNER, name, text)
    os.unlink(path)


def dump(programs: str, name: str) -> None:
    """Writes what a database holds to `DUMPS`; nothing is there if there is no such database any more."""
    path = f"{DUMPS}/{name}"
    with suppress(FileNotFoundError):
        os.unlink(path)
    if [name] not in _listed_databases():
        return
    command = [f"{programs}/pg_dump", "-h", _SOCKETS, "-U", _SUPERUSER, *_DUMP, name]
    done = subprocess.run(command, capture_output=True, env={"LC_ALL": "C"}, check=False)
    if done.returncode:
        raise ServerError(f"'{name}' cannot be read: {done.stderr.decode('utf-8', 'replace')[-300:]}")
    with open(path, "wb") as file:
        file.write(_without_key(done.stdout))


def _listed_databases() -> list[GivenRow]:
    found: list[GivenRow] = []
    client = PostgresClient(_SOCKET, _SUPERUSER, "template1")
    try:
        client.run("SELECT datname FROM pg_database WHERE datallowconn", lambda rows, given: found.extend(given))
    finally:
        client.close()
    return found


def _without_key(script: bytes) -> bytes:
    r"""Returns a script without the lines `\restrict` and `\unrestrict`, whose word nobody can know before."""
    begin = script.find(b"\n\\restrict ")
    if begin < 0:
        return script
    key = script[begin + 11 : script.index(b"\n", begin + 1)]
    for word in (b"\n\\restrict ", b"\n\\unrestrict "):
        script = script.replace(word + key + b"\n", b"\n")
    return script


def quoted(name: str) -> str:
    """Returns a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def session(name: str, *, readonly: bool) -> Iterator[PostgresClient]:
    """Opens a session in a database, for who asks."""
    client = PostgresClient(_SOCKET, _READER if readonly else _OWNER, name)
    try:
        yield client
    finally:
        client.close()


def look(name: str, queries: Sequence[str], most_rows: int, frees: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Returns tables and objects of a database and what queries give, as `looking` has them of others."""
    try:
        with session(name, readonly=True) as client:
            named: list[GivenRow] = []
            client.run(_TABLES, lambda rows, found: named.extend(found))
            tables: dict[str, Any] = {}
            for schema, table in named:
                written = f"SELECT * FROM {quoted(schema or '')}.{quoted(table or '')}"
                shown = table if schema == "public" else f"{schema}.{table}"
                tables[shown or ""] = _looked(client, written, most_rows, f"{name}.{shown}", frees)
            given = [_looked(client, query, most_rows, "", frees) for query in queries]
            return {"tables": tables, "queries": given, "objects": objects(client)}
    except PostgresError as error:
        return {"error": error.args[0], "queries": [{"error": error.args[0]} for _ in queries]}


def _looked(
    client: PostgresClient, query: str, most_rows: int, place: str, frees: Sequence[Sequence[str]]
) -> dict[str, Any]:
    last: dict[str, Any] = {"columns": [], "rows": [], "count": 0}

    def take(rows: GivenRows, found: Iterator[GivenRow]) -> None:
        last.clear()
        last.update(tabled(rows.names, plain_rows(found, rows.types), most_rows, place, frees))

    try:
        client.run(query, take)
    except PostgresError as error:
        return {"error": error.args[0]}
    return last


def serve(exchange: Exchange, configuration: dict[str, Any], show: Callable[[PostgresClient, str, int], Told]) -> None:
    """Answers requests of a keeper.

    {"op": "make", "scripts": {name: [text, ...], ...}}
    {"op": "sql", "name", "query", "readonly"} → as `show` has it
    {"op": "dump", "names"}: what the databases hold is in `DUMPS`
    {"op": "look", "name", "queries", "most_rows", "frees"}: what they hold is in `LOOKED`
    """
    programs = configuration["postgres"]
    while True:
        asked = exchange.receive()
        told: Told = {"text": ""}
        try:
            if asked["op"] == "make":
                make(programs, asked["scripts"])
            else:
                with server(programs):
                    match asked["op"]:
                        case "sql":
                            with session(asked["name"], readonly=asked["readonly"]) as client:
                                told = show(client, asked["query"], configuration["told_bytes"])
                        case "dump":
                            for name in asked["names"]:
                                dump(programs, name)
                        case "look":
                            found = look(asked["name"], asked["queries"], asked["most_rows"], asked["frees"])
                            with open(LOOKED, "w", encoding="utf-8") as file:
                                json.dump(found, file)
        except PostgresError as error:
            told = {"error": {"types": ["PostgresError", _class(error.args[1])], "message": error.args[0]}, "text": ""}
        except BaseException as error:
            told = {"error": {"types": [type(error).__name__], "message": str(error)}, "text": ""}
        exchange.send(told)


_CLASSES = {"42601": "SyntaxError", "42501": "PermissionError", "25006": "PermissionError"}
_CLASSES |= {"42": "KeyError", "22": "ValueError", "21": "ValueError", "53": "MemoryError", "54": "MemoryError"}
_CLASSES |= {"42804": "TypeError", "42846": "TypeError", "22P02": "TypeError"}


def _class(state: str) -> str:
    """Returns the exception that says the same as a SQLSTATE."""
    return _CLASSES.get(state) or _CLASSES.get(state[:2]) or "PostgresError"
