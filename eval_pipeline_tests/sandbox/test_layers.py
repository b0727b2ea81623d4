"""Further packages of a suite, locked by hashes and read-only in every tier; and what `doctor` says of the tiers."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from eval_pipeline.core.errors import EvalError, InputError
from eval_pipeline.sandbox import diagnosis
from eval_pipeline.sandbox.blocking import BlockingSandbox
from eval_pipeline.sandbox.diagnosis import diagnose, remedy
from eval_pipeline.sandbox.layers import Layer, find_python, install, read_layer
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed, SnippetRan
from eval_pipeline.sandbox.tiers import TIERS, UNSAFE_TIER, NoSandboxError, Tier
from eval_pipeline_plugins.tracks.pandas_code.running.runner import versions

HASH = "--hash=sha256:" + "0" * 64


def wheel(folder: Path, name: str = "tinypack", code: str = "ANSWER = 42", program: str = "pass") -> str:
    """Writes a wheel with a module and a program of its name; returns the line that locks it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": code,
        f"{name}-1.0.data/scripts/{name}": f"#!python\n{program}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        for inner, text in {**files, f"{info}/RECORD": "".join(f"{file},,\n" for file in files)}.items():
            entry = zipfile.ZipInfo(inner)
            entry.external_attr = 0o100755 << 16
            made.writestr(entry, text)
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def listed(folder: Path, text: str) -> Layer:
    (folder / "packages.txt").write_text(text)
    return read_layer(folder / "packages.txt", folder / "layers")


def test_equal_lists_are_one_layer(tmp_path: Path) -> None:
    plain = listed(tmp_path, f"a_b==1.0 {HASH}\nc==2 {HASH}\n")
    same = listed(tmp_path, f"# twice\nC==2 \\\n    {HASH}  # one\n\nA.b==1.0 {HASH} {HASH}\n")
    assert same.requirements == plain.requirements == (f"a-b==1.0 {HASH}", f"c==2 {HASH}")
    assert same.folder == plain.folder
    assert listed(tmp_path, f"c==2.1 {HASH}").folder != listed(tmp_path, f"c==2 {HASH}").folder
    assert not plain.installed


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("polars==1.0", "polars has no hash"),
        (f"polars>=1.0 {HASH}", "found 'polars>=1.0'"),
        (f"polars {HASH}", "found 'polars'"),
        ("polars==1.0 --hash=md5:abc", "expected a line like"),
        (f"--index-url=https://example.org x==1 {HASH}", "expected a line like"),
        (f"x @ https://example.org/x.whl {HASH}", "expected a line like"),
        (f"-e . {HASH}", "expected a line like"),
        ("", "has no packages"),
    ],
)
def test_other_lines_are_refused_with_their_place(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        listed(tmp_path, f"# a comment\n{line}\n")
    assert told in str(raised.value)
    assert not line or "packages.txt:2" in str(raised.value)


def test_only_wheels_with_the_hash_are_installed(tmp_path: Path) -> None:
    line = wheel(tmp_path / "wheels")
    layer = listed(tmp_path, f"tinypack==1.0 {HASH}")
    with pytest.raises(EvalError, match=r"packages\.txt cannot be installed"):
        install(layer, [tmp_path / "wheels"])
    assert not layer.installed
    layer = listed(tmp_path, line)
    install(layer, [tmp_path / "wheels"])
    assert layer.installed
    assert (layer.folder / "tinypack" / "__init__.py").stat().st_mode & 0o222 == 0
    assert [path.name for path in layer.folder.parent.iterdir()] == [layer.folder.name]
    install(layer, [])  # nothing is asked for again


@pytest.mark.parametrize(
    "head", ["#!/a/venv/bin/python", "#!/bin/sh\n'''exec' \"/long/or spaced/python\" \"$0\" \"$@\"\n' '''"]
)
def test_programs_of_packages_look_for_python(tmp_path: Path, head: str) -> None:
    """pip writes the second form where the path of Python is long or has spaces."""
    program, other = tmp_path / "program", tmp_path / "other"
    program.write_text(f"{head}\nprint(42)\n")
    program.chmod(0o755)
    other.write_text("#!/bin/sh\necho python\n")
    find_python(tmp_path)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "42\n"
    assert other.read_text() == "#!/bin/sh\necho python\n"


def test_an_environment_without_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EvalError, match="needs pip, which this environment lacks: `python -m ensurepip` adds it"):
        install(listed(tmp_path, wheel(tmp_path / "wheels")), [tmp_path / "wheels"])


@pytest.mark.parametrize("tier", ["bwrap", "sandlock", "unsafe"])
def test_snippets_import_the_packages_and_cannot_change_them(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_SANDBOX", tier)
    ours = dict.fromkeys(("numpy", "random", "colorsys"), "raise ImportError('not ours')")
    for name, code in {"tinypack": "ANSWER = 42", **ours}.items():
        (tmp_path / "layer" / name).mkdir(parents=True)
        (tmp_path / "layer" / name / "__init__.py").write_text(code)
    try:
        box = BlockingSandbox(Limits(packages=str(tmp_path / "layer")), zygotes=1)
    except NoSandboxError as error:
        try:
            BlockingSandbox(zygotes=1).close()
        except NoSandboxError:
            pytest.skip(str(error))
        raise
    with box:
        ran = box.run("import tinypack, colorsys\nresult = [tinypack.ANSWER, len(pd.DataFrame())]")
        assert isinstance(ran, SnippetRan), ran
        assert ran.result["value"]["v"] == [42, 0]
        if tier != "unsafe":  # it protects no files
            spoiled = box.run("import tinypack\nopen(tinypack.__file__, 'a').write('x')\nresult = 1")
            assert isinstance(spoiled, SnippetFailed)
    assert (tmp_path / "layer" / "tinypack" / "__init__.py").read_text() == "ANSWER = 42"


OWN_PANDAS = """
import sys
layer = __file__.rsplit("/", 2)[0]
sys.path.remove(layer)
del sys.modules["pandas"]
import pandas
sys.path.append(layer)
pandas.__version__ = "0.1"
"""


def test_a_layer_may_have_a_pandas_of_its_own_where_all_that_imports_it_is_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "layer" / "pandas").mkdir(parents=True)
    (tmp_path / "layer" / "pandas" / "__init__.py").write_text(OWN_PANDAS)
    for tier in ("sandlock", "unsafe"):
        monkeypatch.setenv("EVAL_SANDBOX", tier)
        with pytest.raises(
            NoSandboxError, match=r"does not confine what imports a suite's own pandas|not installed|kernel"
        ):
            BlockingSandbox(Limits(packages=str(tmp_path / "layer")), zygotes=1)
    monkeypatch.setenv("EVAL_SANDBOX", "bwrap")
    try:
        BlockingSandbox(zygotes=1).close()
    except NoSandboxError as error:
        pytest.skip(str(error))
    with BlockingSandbox(Limits(packages=str(tmp_path / "layer")), zygotes=1) as box:
        ran = box.run("result = [pd.__version__, len(df)]", {"t": pd.DataFrame({"a": [1]})})
    assert isinstance(ran, SnippetRan) and ran.result["value"]["v"] == ["0.1", 1]


def test_a_list_tells_the_versions_of_what_it_names(tmp_path: Path) -> None:
    layer = listed(
        tmp_path, f"pandas==2.0.3 {HASH}\nnumpy==1.26.4 ; python_version > '3' {HASH}\npandas-stubs==9 {HASH}"
    )
    assert [layer.version_of(name) for name in ("pandas", "numpy", "pandas-stubs", "scipy")] == [
        "2.0.3",
        "1.26.4",
        "9",
        None,
    ]
    assert versions(layer) == {"pandas": "2.0.3", "numpy": "1.26.4"}
    assert versions(listed(tmp_path, f"numpy==1.26.4 {HASH}")) == versions(None)


NO_NAMESPACE = "bwrap (system): bwrap: No permissions to create new namespace"
ABSENT = ["bwrap (system): bubblewrap is not installed", "bwrap (wheel): bubblewrap is not installed"]


def test_the_first_tier_that_runs_a_snippet_is_named_with_why_the_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Tier("bwrap", "bwrap (broken)", lambda: "bubblewrap is not installed", UNSAFE_TIER.launch)
    monkeypatch.setattr(diagnosis, "allowed_tiers", lambda: (broken, UNSAFE_TIER))
    found = diagnose()
    assert (found.title, found.best) == ("unsafe", False)
    assert found.reasons == ("bwrap (broken): bubblewrap is not installed",)
    assert "apt install bubblewrap" in found.remedy


def test_the_best_tier_needs_no_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "allowed_tiers", lambda: TIERS)
    found = diagnose()
    if found.title is None or not found.title.startswith("bwrap"):
        pytest.skip(str(found.reasons))
    assert (found.best, found.remedy) == (True, "")


@pytest.mark.parametrize(
    ("setting", "content", "words"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1\n", "apparmor_restrict_unprivileged_userns=0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "0\n", "let this user make user namespaces"),
        ("kernel/unprivileged_userns_clone", "0\n", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0\n", "max_user_namespaces=10000"),
        ("user/max_user_namespaces", "96551\n", "let this user make user namespaces"),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(tmp_path: Path, setting: str, content: str, words: str) -> None:
    (tmp_path / setting).parent.mkdir(parents=True)
    (tmp_path / setting).write_text(content)
    assert words in remedy("sandlock", [NO_NAMESPACE, ABSENT[1]], tmp_path, tmp_path)


def test_a_container_is_told_how_to_be_started(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    assert "--security-opt" in remedy(None, [NO_NAMESPACE], tmp_path, tmp_path)


def test_without_bubblewrap_it_is_to_be_installed(tmp_path: Path) -> None:
    assert "apt install bubblewrap" in remedy("sandlock", ABSENT, tmp_path, tmp_path)


def test_a_lesser_tier_by_choice_is_not_the_machine_s_fault(tmp_path: Path) -> None:
    assert remedy("unsafe", [], tmp_path, tmp_path) == "unset EVAL_SANDBOX"
