"""No snippet leaves a trace for the next, holds up its zygote, or breaks the reader of results: see the attacks."""

import asyncio
import gc
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import psutil
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox import zygote_process
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.reading import read_outcome
from eval_pipeline.sandbox.returned.results import as_pandas
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import compare
from eval_pipeline_plugins.tracks.pandas_code.results.reading import answer_key, kept, result_text
from eval_pipeline_tests.sandbox.attacks import ENDING
from eval_pipeline_tests.sandbox.campaign import JAILS, LIMITS, tier_of, usable
from eval_pipeline_tests.sandbox.conftest import Boxes
from eval_pipeline_tests.sandbox.persistent_attacks import CARRYING, FORGED, LEAVE, LOOK, PRELUDE, SHARED, STALLING
from eval_pipeline_tests.services import no_jail

TABLES = {"df": pd.DataFrame({"a": [1, 2]})}
SHORT = (
    *("output taken back", "result taken back", "first thread ends"),
    *("endless flush", "pipes closed", "signals ignored"),
)
"""The ways of holding up that CI tries; `make soak` tries all."""
_AT_MOST_S = 5.0
"""One second, and what other work on the machine may take off a bound on time."""


async def found(box: PythonSandbox, names: list[str], *, kept: bool = False) -> dict[str, str]:
    looks = {name: CARRYING[name][1] for name in names}
    outcome = await box.run(f"PARTS = {looks!r}\n{PRELUDE}{LOOK}", TABLES, leaves_nothing=kept)
    assert isinstance(outcome, SnippetRan), outcome
    told: dict[str, str] = as_pandas(outcome.result)
    return told


async def found_after(
    box: PythonSandbox, names: list[str], leave: str, *, kept: bool, later_kept: bool
) -> dict[str, str]:
    """What a snippet finds after another one.

    If it runs in the process that is kept, that one has run the same before, and is there all the time: it may find
    what the snippet before has left itself.
    """
    if later_kept:
        await box.run("import os; os._exit(0)", leaves_nothing=True)
        await found(box, names, kept=True)
        await box.run("pd.kept_since = 1; result = 0", leaves_nothing=True)
    left = await box.run(leave, TABLES, leaves_nothing=kept)
    assert isinstance(left, SnippetRan), left
    told = await found(box, names, kept=later_kept)
    if later_kept and box.chosen.separate:
        same = await box.run("result = pd.kept_since", leaves_nothing=True)
        assert isinstance(same, SnippetRan), "the process that is kept has ended meanwhile"
    return told


async def traces(
    box: PythonSandbox, together: list[list[str]], *, kept: bool = False, later_kept: bool = False
) -> dict[str, tuple[str, str]]:
    """What a snippet finds after one that does nothing and after an attack, where that is not the same.

    Either may run in the process that is kept for trusted code.
    """
    differing: dict[str, tuple[str, str]] = {}
    for names in together:
        leave = f"PARTS = {[CARRYING[name][0] for name in names]!r}\n{PRELUDE}{LEAVE}"
        before = await found_after(box, names, "result = 0", kept=kept, later_kept=later_kept)
        after = await found_after(box, names, leave, kept=kept, later_kept=later_kept)
        differing |= {name: (before[name], after[name]) for name in names if before[name] != after[name]}
    return differing


@pytest.mark.parametrize("at_a_time", [len(CARRYING), pytest.param(1, marks=pytest.mark.soak)], ids=["all", "one"])
@pytest.mark.parametrize("title", JAILS)
def test_no_snippet_leaves_a_trace_for_the_next(title: str, at_a_time: int, boxes: Boxes) -> None:
    assert len(CARRYING) >= 40
    expected = set() if tier_of(title).separate else SHARED
    together = [[*names] for names in zip(*[iter(CARRYING)] * at_a_time, strict=True)]
    assert boxes.wait(traces(boxes.of(title), together)).keys() <= expected


@pytest.mark.parametrize("title", JAILS)
def test_trusted_code_whose_process_is_kept_leaves_a_model_no_trace_and_finds_none_of_it(
    title: str, boxes: Boxes
) -> None:
    box, together = boxes.of(title), [[*CARRYING]]
    expected = set() if tier_of(title).separate else SHARED
    assert boxes.wait(traces(box, together, kept=True)).keys() <= expected
    assert boxes.wait(traces(box, together, later_kept=True)).keys() <= expected


def test_the_first_parts_of_the_attacks_do_something(boxes: Boxes) -> None:
    """In one process what is left is found: the attacks are real."""
    leaves = [code for code, _ in CARRYING.values()]
    looks = {name: look for name, (_, look) in CARRYING.items()}
    before = boxes.wait(found(boxes.of(), list(CARRYING)))
    code = f"PARTS = {leaves!r}\n{PRELUDE}{LEAVE}\nPARTS = {looks!r}\n{LOOK}"
    (outcome,) = boxes.run(code, tables=TABLES)
    assert isinstance(outcome, SnippetRan), outcome
    after = as_pandas(outcome.result)
    assert len([name for name in CARRYING if after[name] != before[name]]) >= 24


async def held_up(box: PythonSandbox, names: Iterable[str], wall_s: float) -> dict[str, str]:
    """By name what is wrong: code that was not stopped in time, or that the next snippet had to wait for."""
    wrong = {}
    for name in names:
        began = time.monotonic()
        outcome = await box.run(STALLING[name], wall_s=wall_s)
        took = time.monotonic() - began
        began = time.monotonic()
        after = await box.run("result = 6 * 7")
        waited = time.monotonic() - began
        if took > wall_s + _AT_MOST_S or waited > _AT_MOST_S:
            wrong[name] = f"it took {took:.1f} s, the next one waited {waited:.1f} s"
        elif isinstance(outcome, SnippetRan) or outcome.error_class not in _ENDS:
            wrong[name] = repr(outcome)
        elif not isinstance(after, SnippetRan) or after.result["value"] != 42:
            wrong[name] = f"next: {after!r}"
    return wrong


_ENDS = (ErrorClass.TIMEOUT, ErrorClass.SANDBOX, ErrorClass.MEMORY)
"""A busy one is stopped by the kernel (CPU time) where the zygote comes late."""


@pytest.mark.parametrize(
    ("title", "names", "wall_s"),
    [(JAILS[0], SHORT, 0.4), *(pytest.param(one, [*STALLING], 2.0, marks=pytest.mark.soak) for one in JAILS)],
)
def test_no_snippet_holds_up_its_zygote(title: str, names: Iterable[str], wall_s: float, boxes: Boxes) -> None:
    assert len(STALLING) >= 20
    assert boxes.wait(held_up(boxes.of(title), names, wall_s)) == {}


@pytest.mark.parametrize("on_disk", [True, False])
def test_nobody_waits_until_nested_folders_are_removed(
    on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the tier whose snippets share a folder, in memory or on a disk; nothing of it is left in the end."""
    monkeypatch.setattr(zygote_process, "_IN_MEMORY", str(tmp_path / "nothing" if on_disk else tmp_path / "memory"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "memory").mkdir()
    tier = tier_of("sandlock")
    if why_not := tier.why_not():
        raise no_jail(why_not)

    async def held() -> dict[str, str]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[tier]) as box:
            return await held_up(box, ("deep folder",), 0.4)

    assert asyncio.run(held()) == {}
    assert [*tmp_path.rglob("*")] == [tmp_path / "memory"]


@pytest.mark.parametrize("name", FORGED)
def test_results_that_are_forged_as_data_break_nobody(name: str) -> None:
    """Each is no result, or a value that everything that reads results takes."""
    seen = {"stopped": None, "status": 0, "seconds": 0.1, "peak_bytes": 5, "clean": True}
    outcome = read_outcome(seen, b"", FORGED[name].encode(), LIMITS, "bwrap")
    if isinstance(outcome, SnippetRan):
        column = {"name": None, "dtype": "int64", "values": [1]}
        for expected in ({"kind": "value", "value": 1}, {"kind": "array", "values": column, "shape": [1]}):
            assert isinstance(compare(outcome.result, expected, ordered=True).score, float)
        assert isinstance(result_text(kept(outcome.result).get("result", outcome.result)), str)
        assert isinstance(answer_key(kept(outcome.result)), str)


SOAK_LIMITS = Limits(wall_s=2.0, memory_bytes=512 << 20, result_bytes=1 << 20, scratch_files=2_000)
HOSTILE_SHARE = 0.1


def codes(count: int, seed: int) -> list[tuple[int, str, bool]]:
    """Numbered snippets; the number is their result, unless they are hostile."""
    draws = random.Random(seed)
    hostile = [code for code, _ in ENDING.values()]
    found = []
    for number in range(count):
        is_hostile = draws.random() < HOSTILE_SHARE
        code = f"open('left', 'x').write('x'); result = int(pd.Series([{number}]).sum())"
        found.append((number, draws.choice(hostile) if is_hostile else code, is_hostile))
    return found


async def campaign(count: int) -> tuple[Counter[str], int, int]:
    """Runs them; how they ended, and the bytes of memory and open files that this process has gained meanwhile."""
    ended: Counter[str] = Counter()
    process = psutil.Process()
    async with PythonSandbox(SOAK_LIMITS, zygotes=2, tiers=[usable()]) as box:
        await asyncio.gather(*(box.run("result = 1") for _ in range(4)))

        async def one(number: int, code: str, is_hostile: bool) -> None:
            outcome = await box.run(code)
            if is_hostile:
                assert isinstance(outcome, SnippetFailed), (code, outcome)
                ended[f"hostile: {outcome.error_class}"] += 1
            else:
                assert isinstance(outcome, SnippetRan), (code, outcome)
                assert outcome.result["value"] == number
                ended["ran"] += 1

        memory, files = process.memory_info().rss, process.num_fds()
        await asyncio.gather(*(one(*each) for each in codes(count, seed=5)))
        gc.collect()
        # A zygote that was just given up, or is just starting, has its pipes and its log.
        return ended, process.memory_info().rss - memory, process.num_fds() - files


@pytest.mark.parametrize("count", [60, pytest.param(5_000, marks=pytest.mark.soak)])
def test_snippets_leave_nothing_behind_and_all_have_their_result(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(psutil.Process().children(recursive=True))
    ended, memory, files = asyncio.run(campaign(count))
    print(f"\n{count} snippets: {dict(ended)}; gained {memory / 1e6:.1f} MB and {files} open files")
    assert ended.total() == count
    assert files <= 8
    assert memory < 64 << 20
    assert set(psutil.Process().children(recursive=True)) <= before
    assert not list(tmp_path.iterdir())
