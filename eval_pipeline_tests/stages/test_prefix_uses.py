"""How many calls share the beginning of a prompt: what a cache of prompt prefixes is worth."""

from itertools import groupby
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Message
from eval_pipeline.stages.attempts.ask import history_texts, prefix_uses
from eval_pipeline.suites import read_cases
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.support import ROOT

SUITES = sorted(place.parent.name for place in (ROOT / "data" / "suites").glob("*/suite.yaml"))


def test_calls_are_counted_over_all_cases_with_the_same_key() -> None:
    track = cast("Any", SimpleNamespace(prefix_key=lambda case: case.id[0]))
    cases = {name: cast("Any", SimpleNamespace(id=name)) for name in ("a1", "a2", "b1")}
    calls = [(cases["a1"], 2), (cases["b1"], 1), (cases["a2"], 3), (cases["a1"], 1)]
    assert prefix_uses(track, calls) == {"a1": 6, "a2": 6, "b1": 1}


@pytest.mark.parametrize("suite", SUITES)
def test_cases_with_equal_keys_begin_with_equal_messages(suite: str, tmp_path: Any) -> None:
    workspace = Workspace(Home(root=tmp_path, data=ROOT / "data"))
    track = workspace.track(suite)
    cases = sorted(read_cases(workspace.suite(suite)), key=track.prefix_key)
    for _, alike in groupby(cases, key=track.prefix_key):
        begun: tuple[Message, ...] | None = None
        for case in alike:
            for turn in case.turns:
                prompt = track.prompt(case, turn, history_texts(track, case, turn, None), track.prompt_versions[-1])
                shared = prompt.messages[: prompt.shared]
                assert shared, case.id
                begun = begun or shared
                common = min(len(begun), len(shared))
                assert shared[:common] == begun[:common], case.id
