"""Further packages of a suite in its worlds: for the tools, for what makes a world, and for checks."""

from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.sandbox.layers import MissingPackagesError, install
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_tests.sandbox.test_layers import wheel

CASE = {
    "id": "packed",
    "world": "shop",
    "task": "Say it twice.",
    "gold": [
        {"python": "import tinypack; open('one.txt', 'w').write(str(tinypack.ANSWER))"},
        {"shell": "tinypack > two.txt && python3 -c 'import tinypack; print(tinypack.ANSWER)' >> two.txt"},
        {"answer": "done"},
    ],
    "checks": [
        "state",
        {"command": {"run": "test ${PYTHONPATH%%:*} = /packages/suite && test $DO_NOT_TRACK = 1"}},
        {"command": {"run": "test \"$(cat made.txt one.txt two.txt | tr '\\n' ' ')\" = '4242run 42 42 ' && tinypack"}},
    ],
}
"""The number in a file of `build.py`, of the session of Python, and of a program with what it imports."""


def read(folder: Path) -> Any:
    return TRACK.read_case(CASE, "packed", "cases.yaml", 1, TRACK.read_shared(folder, {"packages": "packages.txt"}))


def test_tools_builds_and_checks_have_the_packages_of_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    world, program = tmp_path / "worlds" / "shop", "import tinypack; print('run', tinypack.ANSWER)"
    world.mkdir(parents=True)
    (world / "world.yaml").write_text("description: Nothing.\n")
    (world / "build.py").write_text("import tinypack\nopen('made.txt', 'w').write(str(tinypack.ANSWER))\n")
    (tmp_path / "packages.txt").write_text(wheel(tmp_path / "wheels", program=program))
    case = read(tmp_path)
    with pytest.raises(MissingPackagesError, match=r"packages\.txt lists are not installed"):
        TRACK.check_gold(case)
    layer = case.context.world.layer
    assert layer is not None
    install(layer, [tmp_path / "wheels"])
    try:
        assert TRACK.check_gold(case) == []
    finally:
        close_worlds()
    (tmp_path / "packages.txt").write_text(wheel(tmp_path / "wheels", code="ANSWER = 43", program=program))
    assert read(tmp_path).context.world.hash != case.context.world.hash, "what other packages make is another world"
