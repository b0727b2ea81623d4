"""PostgreSQL and MariaDB of Debian's packages on sockets of the test's, with the roles that docs/sql.md asks for."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
import pymysql

from eval_pipeline_tests.services import program

_START_S = 240.0
NOBODY = 65534
DATABASE, LOADER, READER = "evals", "loader", "reader"
SCRATCH, WRITER = "scratch", "writer"
STATE_USER, STATE_PASSWORD = "keeper", "t0p%s/cret"


SCRIPTS = Path("/usr/share/mysql")
_QUICK = (
    "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--skip-log-bin",
    "--performance-schema=OFF", "--skip-name-resolve",
)  # fmt: skip


def _run(*command: str, said: str = "") -> None:
    subprocess.run(
        _as_nobody(command), check=True, capture_output=True, cwd="/", timeout=_START_S, input=said, text=True
    )


def _as_nobody(command: tuple[str, ...]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    found = program(command[0])
    assert found is not None, f"{command[0]} is not installed"
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    return [*prefix, found, *command[1:]]


@contextmanager
def _serving(
    command: list[str], log: Path, is_up: Callable[[], object], ending: signal.Signals = signal.SIGTERM
) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("ab") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd="/")
    try:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                is_up()
                break
            except (psycopg.Error, pymysql.err.Error, OSError):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        yield process
    finally:
        process.send_signal(ending)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder with a short name, as those of sockets have to be."""
    with tempfile.TemporaryDirectory(prefix="evaldb-") as name:
        if os.getuid() == 0:
            os.chown(name, NOBODY, NOBODY)
        yield Path(name)


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    """A server; the addresses of its roles, `SUPERUSER` among them."""
    with _folder() as folder:
        data = folder / "data"
        _run("initdb", "-D", str(data), "-U", "root", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        quick = "fsync=off full_page_writes=off shared_buffers=16MB listen_addresses= max_connections=40".split()
        settings = [word for setting in (*quick, f"unix_socket_directories={folder}") for word in ("-c", setting)]
        root = f"postgresql://root@/postgres?host={folder}"
        command = _as_nobody(("postgres", "-D", str(data), *settings))
        # SIGINT ends the sessions that are open; on SIGTERM it would wait for them.
        with _serving(command, folder / "log", lambda: psycopg.connect(root).close(), signal.SIGINT):
            with psycopg.connect(root, autocommit=True) as session:
                session.execute(f"CREATE ROLE {LOADER} LOGIN")
                session.execute(f"CREATE ROLE {READER} LOGIN")
                session.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
                session.execute(f"REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC")
                session.execute(f"GRANT CONNECT, CREATE ON DATABASE {DATABASE} TO {LOADER}")
                session.execute(f"GRANT CONNECT ON DATABASE {DATABASE} TO {READER}")
                session.execute(f"CREATE ROLE {WRITER} LOGIN")
                session.execute(f"CREATE DATABASE {SCRATCH} TEMPLATE template0")
                session.execute(f"REVOKE ALL ON DATABASE {SCRATCH} FROM PUBLIC")
                session.execute(f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {SCRATCH} TO {WRITER}")
            roles = (("LOADER", LOADER), ("READER", READER), ("SUPERUSER", "root"))
            yield {
                **{role: f"postgresql://{user}@/{DATABASE}?host={folder}" for role, user in roles},
                "WRITER": f"postgresql://{WRITER}@/{SCRATCH}?host={folder}",
            }


def free_port() -> int:
    """A port on loopback that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class StatePostgres:
    """A server on loopback with a password, for state that hosts share; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        secret = folder / "password"
        secret.write_text(STATE_PASSWORD)
        if os.getuid() == 0:
            os.chown(secret, NOBODY, NOBODY)
        made = ("-U", STATE_USER, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync")
        _run("initdb", "-D", str(folder / "data"), *made)
        self._databases = 0
        self.start()

    def url(self, database: str = "postgres", password: str = STATE_PASSWORD) -> str:
        """The address of a database."""
        return f"postgresql://{STATE_USER}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def new_database(self, like: str = "template0") -> str:
        """The address of a database that has nothing in it, or what the one of that name has."""
        self._databases += 1
        name = f"state{self._databases}"
        with psycopg.connect(self.url(), autocommit=True) as session:
            session.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        return self.url(name)

    def start(self, *more: str) -> None:
        """Starts it with more settings, and returns when it answers."""
        quick = (
            "fsync=off full_page_writes=off shared_buffers=16MB max_connections=60 listen_addresses=127.0.0.1".split()
        )
        told = (*quick, f"port={self.port}", f"unix_socket_directories={self.folder}", *more)
        settings = [word for setting in told for word in ("-c", setting)]
        command = _as_nobody(("postgres", "-D", str(self.folder / "data"), *settings))
        self._serving = _serving(
            command, self.folder / "log", lambda: psycopg.connect(self.url()).close(), signal.SIGINT
        )
        self.process = self._serving.__enter__()

    def restart_for_others(self, address: str, certificate: Path) -> None:
        """Starts it again with TLS at one more address; `certificate`: of deploy/certificates.sh, beside its key."""
        folder = self.folder
        for source, name in ((certificate, "other.crt"), (certificate.with_suffix(".key"), "other.key")):
            shutil.copy(source, folder / name)
            if os.getuid() == 0:
                os.chown(folder / name, NOBODY, NOBODY)
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"hostssl all all {address}/24 scram-sha-256\n")
        self.stop()
        files = (f"ssl_cert_file={folder}/other.crt", f"ssl_key_file={folder}/other.key")
        self.start("ssl=on", *files, f"listen_addresses=127.0.0.1,{address}")

    def restart_with_certificate(self, name: str) -> Path:
        """Starts it again with TLS, as a server of that name; returns its root certificate."""
        root, key = self.folder / "root.crt", self.folder / "server.key"
        made = (
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            f"subjectAltName=DNS:{name}",
        )
        _run("openssl", "req", "-x509", *made, "-keyout", str(key), "-out", str(root))
        self.stop()
        self.start("ssl=on", f"ssl_cert_file={root}", f"ssl_key_file={key}")
        return root

    def stop(self) -> None:
        """Ends it, with the sessions that are open."""
        self._serving.__exit__(None, None, None)

    def kill(self) -> None:
        """Ends it and its sessions by SIGKILL, as a machine that is gone.

        A session that is left has its shared memory attached, so that a new server would refuse to start.
        """
        sessions = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        for session in sessions:
            with suppress(psutil.NoSuchProcess):
                session.kill()
        _, left = psutil.wait_procs(sessions, timeout=10)
        assert not left, left


@contextmanager
def state_postgres() -> Iterator[StatePostgres]:
    """A server for state that hosts share."""
    with _folder() as folder:
        server = StatePostgres(folder)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def serving_over_tls(certificate: Path, key: Path) -> Iterator[int]:
    """A server on a loopback port that speaks TLS with this certificate; its port."""
    with _folder() as folder:
        _run("initdb", "-D", str(folder / "data"), "-U", "root", "-A", "trust", "--no-sync")
        for source, name in ((certificate, "server.crt"), (key, "server.key")):
            shutil.copy(source, folder / name)
            if os.getuid() == 0:
                os.chown(folder / name, NOBODY, NOBODY)
        port = free_port()
        settings = {
            "ssl": "on", "ssl_cert_file": folder / "server.crt", "ssl_key_file": folder / "server.key", "fsync": "off",
            "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder,
        }  # fmt: skip
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        address = f"postgresql://root@/postgres?host={folder}&port={port}"
        command = _as_nobody(("postgres", "-D", str(folder / "data"), *given))
        with _serving(command, folder / "log", lambda: psycopg.connect(address).close(), signal.SIGINT):
            yield port


def _bootstrap(data: Path) -> None:
    """What mariadb-install-db does, which is of no use without the client's package."""
    parts = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
    script = "".join((SCRIPTS / f"{part}.sql").read_text() for part in parts)
    command = ("mariadbd", "--no-defaults", "--bootstrap", f"--datadir={data}", *_QUICK)
    _run("mkdir", str(data), str(data / "mysql"))
    _run(*command, said=f"USE mysql;\n{script}")


@contextmanager
def mariadb() -> Iterator[dict[str, str]]:
    """A server; the addresses of its roles, `SUPERUSER` among them."""
    with _folder() as folder:
        data, socket = folder / "data", folder / "s"
        _bootstrap(data)
        told = (f"--datadir={data}", f"--socket={socket}", f"--pid-file={folder}/pid", "--skip-networking")
        command = _as_nobody(("mariadbd", "--no-defaults", *told, *_QUICK))
        root = {"unix_socket": str(socket), "user": "root"}
        with _serving(command, folder / "log", lambda: pymysql.connect(**root).close()):
            with pymysql.connect(**root) as session, session.cursor() as cursor:
                cursor.execute(f"CREATE USER {LOADER}, {READER}")
                cursor.execute(f"GRANT ALL ON `eval\\_%`.* TO {LOADER}")
                cursor.execute(f"GRANT SELECT ON `eval\\_%`.* TO {READER}")
            yield {
                role: f"mysql://{user}@/?unix_socket={socket}"
                for role, user in (("LOADER", LOADER), ("READER", READER), ("SUPERUSER", "root"))
            }
