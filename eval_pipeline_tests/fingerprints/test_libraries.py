"""Which libraries count, and data files."""

from importlib.metadata import version
from pathlib import Path

import pytest

from eval_pipeline.fingerprints import libraries
from eval_pipeline.fingerprints.fingerprints import FingerprintError, Fingerprints
from eval_pipeline_tests.fingerprints.packages import Change, write

A = """
import json
import pandas as pd
import yaml
from sqlglot import exp

def f(x):
    return pd.DataFrame(x)

def g(x):
    import duckdb
    return duckdb.sql(x), yaml, json

def h(x: exp.Select):
    return f(x), g(x)

def k(x: "pd.DataFrame"):
    return x
"""


@pytest.mark.parametrize(
    ("root", "names"), [("f", ["pandas"]), ("g", ["duckdb"]), ("h", ["duckdb", "pandas"]), ("k", [])]
)
def test_libraries_that_reached_definitions_use(tmp_path: Path, root: str, names: list[str]) -> None:
    found = Fingerprints(roots={"pkg": write(tmp_path, {"a": A})}).of(f"pkg.a:{root}")
    assert found.libraries == {name: version(name) for name in names}


def test_every_decisive_library_has_its_version() -> None:
    found = libraries.versions(libraries.DECISIVE)
    assert found == {name: version(name) for name in libraries.DECISIVE.values()}
    assert libraries.versions(["os", "yaml"]) == {}


def test_a_library_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "DECISIVE", {"nowhere": "no-such-distribution"})
    assert libraries.versions(["nowhere"]) == {"no-such-distribution": libraries.NOT_INSTALLED}


def _with_data(text: str, declared: str = "('words.txt',)") -> dict[str, str]:
    return {"a": f"DATA_FILES = {declared}\ndef f():\n    return 1\n", "words.txt": text}


def test_data_files_count_by_their_contents(change: Change) -> None:
    assert change.matters(_with_data("one"), _with_data("two"))
    assert not change.matters(_with_data("one"), _with_data("one"))
    assert not change.matters(_with_data("one", "()"), _with_data("two", "()"))


def test_data_files_of_modules_that_are_not_reached_do_not_count(change: Change) -> None:
    other = {"b": "def f():\n    return 1\n"}
    assert not change.matters(_with_data("one") | other, _with_data("two") | other, "pkg.b:f")


def test_folders_of_data_count_file_by_file(change: Change) -> None:
    folder = {"a": "DATA_FILES = ('words',)\ndef f():\n    return 1\n", "words/x.txt": "one"}
    assert change.matters(folder, folder | {"words/x.txt": "two"})
    assert change.matters(folder, folder | {"words/y.txt": ""})


def test_a_data_file_that_is_missing_is_told(tmp_path: Path) -> None:
    package = write(tmp_path, {"a": "DATA_FILES = ('words.txt',)\ndef f():\n    return 1\n"})
    with pytest.raises(FingerprintError, match=r"DATA_FILES of pkg\.a names 'words\.txt'"):
        Fingerprints(roots={"pkg": package}).of("pkg.a:f")
