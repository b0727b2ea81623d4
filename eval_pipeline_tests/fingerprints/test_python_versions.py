"""The same source has the same digests on every version of Python."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from eval_pipeline.fingerprints.parsed.reading import read_module
from eval_pipeline.fingerprints.parsed.records import to_plain
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import PRODUCT, ROOT

VERSIONS = ("3.11", "3.12", "3.13")
SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from eval_pipeline.fingerprints.parsed.reading import read_module
from eval_pipeline.fingerprints.parsed.records import to_plain
asked = json.load(sys.stdin)
told = {name: read_module(text.encode(), name, is_package=package) for name, (text, package) in asked.items()}
print(json.dumps({"version": sys.version_info[:2], "told": {name: to_plain(one) for name, one in told.items()}}))
"""

Asked = Mapping[str, tuple[str, bool]]
CASES: list[dict[str, Any]] = golden("fingerprints.yaml")


def _interpreters() -> Iterator[tuple[str, str]]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        installed = sorted(pyenv.glob(f"{version}*/bin/python"))
        found = str(installed[-1]) if installed else which(f"python{version}")
        if version != f"{sys.version_info[0]}.{sys.version_info[1]}":
            yield version, found or ""


def _read(asked: Asked) -> Any:
    told = {
        name: to_plain(read_module(text.encode(), name, is_package=package)) for name, (text, package) in asked.items()
    }
    return json.loads(json.dumps(told))


def _read_by(interpreter: str, version: str, asked: Asked) -> Any:
    if not interpreter:
        pytest.skip(f"Python {version} is not installed here")
    command = [interpreter, "-B", "-c", SCRIPT, str(ROOT)]
    ran = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    assert ".".join(map(str, told["version"])) == version
    return told["told"]


def _sources(step: int) -> dict[str, tuple[str, bool]]:
    """Every so many modules of the package."""
    found = {}
    for path in sorted(path for name in PRODUCT for path in (ROOT / name).rglob("*.py"))[::step]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts)] = (path.read_text("utf-8"), parts[-1] == "__init__")
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_golden_digests(case: dict[str, Any]) -> None:
    read = read_module(case["text"].encode(), "m", is_package=False)
    assert {name: definition.tree for name, definition in read.definitions.items()} == case["digests"]
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in case["digests"].values())


@pytest.mark.parametrize(("version", "interpreter"), list(_interpreters()))
def test_other_versions_read_the_same(version: str, interpreter: str) -> None:
    asked = {case["what"]: (case["text"], False) for case in CASES} | _sources(12)
    assert _read_by(interpreter, version, asked) == _read(asked)


@pytest.mark.soak
@pytest.mark.parametrize(("version", "interpreter"), list(_interpreters()))
def test_other_versions_read_every_module_the_same(version: str, interpreter: str) -> None:
    asked = _sources(1)
    assert _read_by(interpreter, version, asked) == _read(asked)
