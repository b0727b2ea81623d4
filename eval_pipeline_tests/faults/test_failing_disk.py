"""Operations on files fail one by one, room runs out, the clock jumps: told in a sentence, mended by the next run.

A shim before libc has them fail (`shim.c`), in all processes and libraries of a run.
"""

import errno
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import pytest

from eval_pipeline.providers import registry
from eval_pipeline_tests.fakes.logged import PLACE
from eval_pipeline_tests.forked import completed
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import ROOT, Lab, Said, case

SOURCE = Path(__file__).with_name("shim.c")
CONCURRENCY = 2
RUN = ("run", "--no-report", "--eval-date", "2026-03-01")
STATE = struct.Struct("lll")
LONGEST_S = 200
DAY_S = 86_400


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shim, compiled."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler (Debian: gcc and libc6-dev)")
    made = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"], check=True)
    return made


@dataclass(frozen=True)
class Ground:
    """One home, and a run on it under the shim."""

    lab: Lab
    shim: Path

    @property
    def state(self) -> Path:
        return self.lab.home.root.parent / "state"

    @property
    def requests(self) -> Counter[str]:
        log = self.lab.home.root.parent / "requests.log"
        return Counter(log.read_text().splitlines()) if log.exists() else Counter()

    @property
    def failed(self) -> str:
        log = self.lab.home.root.parent / "failed.log"
        return log.read_text() if log.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        return self.lab.environment | {"LOGGED_REQUESTS": str(self.lab.home.root.parent / "requests.log")}

    def again(self) -> "subprocess.CompletedProcess[str]":
        """The run that comes after, which nothing disturbs."""
        return completed("eval_pipeline_tests.fakes.logged:main", RUN, self.environment)

    def set_clock(self, seconds: int) -> None:
        with self.state.open("r+b") as file:
            file.seek(2 * STATE.size // 3)
            file.write(struct.pack("l", seconds))

    def run(self, *, nth: int = 0, error: int = errno.EIO, quota: int = 0, latency_s: float = 0.0) -> Said:
        self.state.write_bytes(bytes(STATE.size))
        folder = self.lab.home.root.parent
        environment = os.environ | self.environment | {
            "LD_PRELOAD": str(self.shim), "SHIM_HOME": f"{self.lab.home.root}/", "SHIM_STATE": str(self.state),
            "SHIM_N": str(nth), "SHIM_ERRNO": str(error), "SHIM_QUOTA": str(quota),
            "SHIM_LOG": str(folder / "failed.log"), "LOGGED_LATENCY_S": str(latency_s), "PYTHONFAULTHANDLER": "1",
        }  # fmt: skip
        with subprocess.Popen(
            [sys.executable, "-m", "eval_pipeline_tests.fakes.logged", *RUN],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            try:
                said, told = child.communicate(timeout=LONGEST_S)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGABRT)  # it tells where each of its threads stands
                said, told = child.communicate()
                pytest.fail(f"no end after {LONGEST_S} s (seed {SEED}, {self.failed.strip()})\n{said}\n{told}")
        return Said(child.returncode, said, told)

    def operations(self) -> tuple[int, int]:
        """Operations on files of the home, and bytes written, in the last run."""
        found, written, _ = STATE.unpack(self.state.read_bytes())
        return found, written


def ground(folder: Path, shim: Path) -> Ground:
    folder.mkdir()
    lab = Lab.at(folder)
    lab.suite(cases=[case(f"c{index}", ("50", 50.0), ("add(50, 7)", 57.0)) for index in range(4)])
    lab.versions(
        {"name": "logged", "provider": "logged", "concurrency": CONCURRENCY, "price": {"input": 1, "output": 2}}
    )
    return Ground(lab, shim)


@pytest.fixture(scope="module")
def undisturbed(module_folder: Path, shim: Path) -> Iterator[Ground]:
    """What a run leaves that nothing disturbs; the tests only look at it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.PROVIDERS, "logged", PLACE)
        made = ground(module_folder / "undisturbed", shim)
        said = made.run()
        assert said.code == 0, said.text
        yield made


def check(found: Ground, said: Said, undisturbed: Ground, what: str) -> None:
    """What has to hold after a run that was disturbed, and after the next one."""
    what = f"{what} {found.failed.strip()} (seed {SEED})\n{said.text}"
    assert said.code in {0, 1, 2}, what
    assert "Traceback" not in said.text, what
    if said.code == 0:  # what failed was not needed: then nothing is missing
        assert found.lab.store_contents() == undisturbed.lab.store_contents(), what
    again = found.again()
    assert again.returncode == 0, f"{what}\nthen: {again.stdout}{again.stderr}"
    assert found.lab.store_contents() == undisturbed.lab.store_contents(), what
    paid, wanted = found.requests, undisturbed.requests
    assert paid.keys() == wanted.keys(), what
    assert paid.total() - wanted.total() <= CONCURRENCY, f"paid again: {what}"


def walk(tmp_path: Path, undisturbed: Ground, points: list[tuple[int, int]]) -> Counter[str]:
    outcomes = Counter[str]()
    for number, (nth, error) in enumerate(points):
        found = ground(tmp_path / f"n{number}", undisturbed.shim)
        said = found.run(nth=nth, error=error)
        check(found, said, undisturbed, f"operation {nth} fails with {errno.errorcode[error]}")
        outcomes[f"{found.failed.split(' ')[0]}: exit {said.code}"] += 1
        shutil.rmtree(found.lab.home.root.parent)
    return outcomes


def test_an_operation_fails(tmp_path: Path, undisturbed: Ground) -> None:
    rng, (count, _) = random.Random(SEED), undisturbed.operations()
    assert count > 1_000
    point = rng.randrange(1, count), rng.choice([errno.EIO, errno.ENOSPC])
    assert walk(tmp_path, undisturbed, [point]).total() == 1


@pytest.mark.soak
def test_operations_fail_all_over_a_run(tmp_path: Path, undisturbed: Ground) -> None:
    rng, (count, _) = random.Random(SEED), undisturbed.operations()
    points = [(nth, rng.choice([errno.EIO, errno.ENOSPC])) for nth in range(rng.randrange(1, 40), count, count // 200)]
    print(f"seed {SEED}, {count:,} operations: {dict(walk(tmp_path, undisturbed, points))}")


def fill(tmp_path: Path, undisturbed: Ground, sizes: list[int]) -> Counter[int]:
    outcomes = Counter[int]()
    for number, size in enumerate(sizes):
        found = ground(tmp_path / f"s{number}", undisturbed.shim)
        said = found.run(quota=size)
        check(found, said, undisturbed, f"there is room for {size:,} bytes")
        outcomes[said.code] += 1
        shutil.rmtree(found.lab.home.root.parent)
    return outcomes


def test_room_runs_out(tmp_path: Path, undisturbed: Ground) -> None:
    _, written = undisturbed.operations()
    assert fill(tmp_path, undisturbed, [random.Random(SEED).randrange(written // 2)])[1] > 0


@pytest.mark.soak
def test_room_runs_out_at_every_size(tmp_path: Path, undisturbed: Ground) -> None:
    _, written = undisturbed.operations()
    sizes = [written * part // 60 + 1 for part in range(60)]
    print(f"{written:,} bytes: {dict(fill(tmp_path, undisturbed, sizes))}")


def test_the_clock_jumps(tmp_path: Path, undisturbed: Ground) -> None:
    """Back by a day, forth by two, while models are asked: no figure differs, nobody is asked twice."""
    found, over = ground(tmp_path / "jumping", undisturbed.shim), Event()

    def jump() -> None:
        rng = random.Random(SEED)
        while not over.wait(0.2):
            if found.state.exists():
                found.set_clock(rng.choice([-DAY_S, -60, 0, 60, 2 * DAY_S]))

    jumping = Thread(target=jump)
    jumping.start()
    try:
        said = found.run(latency_s=0.1)
    finally:
        over.set()
        jumping.join()
    assert said.code == 0, said.text
    assert found.requests == undisturbed.requests
    check(found, said, undisturbed, "the clock jumps")
