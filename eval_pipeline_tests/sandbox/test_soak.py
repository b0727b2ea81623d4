"""Many snippets in a row, a tenth of them hostile or crashing: nothing is lost and nothing left behind."""

import asyncio
import gc
import random
import tempfile
from collections import Counter
from pathlib import Path

import psutil
import pytest

from eval_pipeline.sandbox import Limits, PythonSandbox, SnippetFailed, SnippetRan
from eval_pipeline_tests.sandbox.attacks import ENDING
from eval_pipeline_tests.sandbox.campaign import usable

LIMITS = Limits(wall_s=2.0, memory_bytes=512 << 20, result_bytes=1 << 20, scratch_files=2_000)
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
    async with PythonSandbox(LIMITS, zygotes=2, tiers=[usable()]) as box:
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
