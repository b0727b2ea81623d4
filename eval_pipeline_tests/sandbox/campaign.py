"""Plants targets, runs every attack of `attacks.py` in one tier and says what was reached.

Run as `python -m eval_pipeline_tests.sandbox.campaign FOLDER EXTENT` it prints that by tier as JSON: for other users.
"""

import asyncio
import json
import os
import random
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.results import as_pandas
from eval_pipeline.sandbox.tiers import TIERS, UNSAFE_TIER, NoSandboxError, Tier
from eval_pipeline_tests.sandbox.attacks import ENDING, FOUND, HARNESS, LEAVING, REACHING
from eval_pipeline_tests.services import no_jail

PLANTED = "PLANTED_KEY"
"""A variable with a secret, which has to be set before a sandbox is opened."""
LIMITS = Limits(wall_s=5.0, memory_bytes=512 << 20, result_bytes=1 << 20, scratch_bytes=32 << 20, scratch_files=2_000)
TITLES = [tier.title for tier in TIERS]
JAILS = list({tier.name: tier.title for tier in reversed(TIERS)}.values())
"""One tier of each name: both bubblewraps make the same jail."""
_ENDS_AFTER_S = 2.0
_CONTENTS = "planted in a file"


def tier_of(title: str) -> Tier:
    (found,) = [tier for tier in (*TIERS, UNSAFE_TIER) if tier.title == title]
    return found


def usable() -> Tier:
    """The best tier here, or a skip."""
    reasons = {tier.title: tier.why_not() for tier in TIERS}
    for tier in TIERS:
        if reasons[tier.title] is None:
            return tier
    raise no_jail(str(reasons))


@contextmanager
def planted(folder: Path) -> Iterator[dict[str, Any]]:
    """Targets, and afterwards the check that they are as they were."""
    secret, outside = folder / "secret", folder / "outside"
    secret.write_text(_CONTENTS)
    outside.mkdir()
    before = os.stat(secret)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield {"secret": str(secret), "outside": str(outside), "pid": os.getpid(), "port": server.getsockname()[1]}
        after = os.stat(secret)
        assert secret.read_text() == _CONTENTS
        for name in ("st_mode", "st_mtime_ns", "st_nlink"):
            assert getattr(after, name) == getattr(before, name)
        assert not os.listxattr(secret)
        assert not os.listdir(outside)
        try:
            server.accept()
        except BlockingIOError:
            return
        raise AssertionError("the planted server was reached")


async def reached(box: PythonSandbox, targets: dict[str, Any]) -> dict[str, str]:
    """Attacks that reached something, by name, and what."""
    outcome = await box.run(f"ATTACKS = {REACHING!r}\nPLANTED = {targets!r}\n{HARNESS}")
    if not isinstance(outcome, SnippetRan):
        return {"harness": repr(outcome)}
    told = as_pandas(outcome.result)
    assert told.keys() == REACHING.keys()
    return {name: said for name, said in told.items() if said.startswith("reached")}


async def fooled(box: PythonSandbox) -> dict[str, str]:
    """Code that must fail and did not, or not as it should, or harmed the next snippet."""
    wrong = {}
    for name, (code, error_class) in ENDING.items():
        outcome, after = await box.run(code, wall_s=_ENDS_AFTER_S), await box.run("result = 6 * 7")
        if not isinstance(outcome, SnippetFailed) or outcome.error_class is not (error_class or outcome.error_class):
            wrong[name] = repr(outcome)[:300]
        elif not isinstance(after, SnippetRan) or after.result["value"] != 42:
            wrong[name] = f"next: {after!r}"[:300]
    return wrong


async def left(box: PythonSandbox, targets: dict[str, Any]) -> dict[str, Any]:
    """What a snippet finds of the one before it."""
    marker = secrets.token_hex(20)
    code = f"PLANTED = {targets!r}\n" + LEAVING.replace("{marker}", marker)
    leaving = await box.run(code)
    if not isinstance(leaving, SnippetRan) or leaving.result["value"] != marker[::-1]:
        return {"leaving": repr(leaving)}
    outcome: Outcome = await box.run(FOUND.format(first=marker[:20], second=marker[20:]))
    if not isinstance(outcome, SnippetRan):
        return {"looking": repr(outcome)}
    names = ("files", "sum", "len", "environment", "memory", "random")
    found = dict(zip(names, as_pandas(outcome.result), strict=True))
    clean = {"files": [], "sum": 3, "len": 2, "environment": False, "memory": 0, "random": random.Random(0).random()}
    return {name: value for name, value in found.items() if value != clean[name]}


async def campaign(box: PythonSandbox, folder: Path, *, in_full: bool = True) -> dict[str, Any]:
    """Everything that is not as it should be; nothing where the tier holds. In full: with code that is stopped."""
    with planted(folder) as targets:
        wrong = {**await left(box, targets), **await reached(box, targets)}
        return wrong | (await fooled(box) if in_full else {})


async def main(folder: Path, *, in_full: bool) -> dict[str, Any]:
    """What is wrong with each tier that can be used; of the others, why they cannot."""
    os.environ[PLANTED] = "planted in the environment"
    wrong: dict[str, Any] = {}
    for tier in TIERS:
        place = folder / tier.title
        place.mkdir()
        try:
            async with PythonSandbox(LIMITS, zygotes=1, tiers=[tier]) as box:
                wrong[tier.title] = await campaign(box, place, in_full=in_full)
        except NoSandboxError as error:
            wrong[tier.title] = str(error)
    return wrong


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), in_full=sys.argv[2] == "full"))))
