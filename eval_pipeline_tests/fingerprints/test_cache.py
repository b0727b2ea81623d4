"""The cache: what it spares, and that it never gives anything else than reading anew."""

import os
import shutil
import time
from pathlib import Path

import pytest

from eval_pipeline.fingerprints.fingerprints import FingerprintError, Fingerprints
from eval_pipeline.fingerprints.parsed import reading
from eval_pipeline_tests.fingerprints.packages import write

FILES = {
    "a": "from pkg.b import g\nDATA_FILES = ('words.txt',)\ndef f():\n    return g()\n",
    "b": "from pkg import c\ndef g():\n    return c\n",
    "c": "X = 1\n",
    "words.txt": "one",
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the modules that are parsed."""
    names: list[str] = []
    original = reading.read_module

    def noted(source: bytes, name: str, *, is_package: bool) -> object:
        names.append(name)
        return original(source, name, is_package=is_package)

    monkeypatch.setattr(reading, "read_module", noted)
    return names


def _settle(package: Path) -> None:
    """Makes the files look as if nobody had touched them for long."""
    for path in package.rglob("*"):
        os.utime(path, (1e9, 1e9))


def _digest(package: Path, cache: Path | None, place: str = "pkg.a:f") -> str:
    found = Fingerprints(cache, roots={"pkg": package})
    digest = found.of(place).code
    found.save()
    return digest


def test_nothing_is_read_twice(tmp_path: Path, read: list[str]) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "made" / "cache"
    first = _digest(package, cache)
    assert sorted(read) == ["pkg", "pkg.a", "pkg.b", "pkg.c"]
    read.clear()
    written = cache.stat().st_mtime_ns
    assert _digest(package, cache) == first
    assert _digest(package, cache, "pkg.b:g") == _digest(package, None, "pkg.b:g")
    assert sorted(read) == ["pkg", "pkg.b", "pkg.c"], "by the one without a cache"
    assert cache.stat().st_mtime_ns > written, "another root is kept too"
    assert [path.name for path in cache.parent.iterdir()] == ["cache"]


def test_a_changed_module_alone_is_read_again(tmp_path: Path, read: list[str]) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    first = _digest(package, cache)
    read.clear()
    (package / "c.py").write_text("X = 2\n")
    second = _digest(package, cache)
    assert read == ["pkg.c"]
    assert first != second == _digest(package, None)
    assert _digest(package, cache) == second


def test_a_change_that_keeps_size_and_times_is_seen_by_the_time_of_change(tmp_path: Path) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    _settle(package)
    first = _digest(package, cache)
    (package / "c.py").write_text("X = 2\n")
    _settle(package)
    assert _digest(package, cache) != first


def test_data_files_that_change_or_come_are_seen(tmp_path: Path) -> None:
    files = FILES | {"a": FILES["a"].replace("words.txt", "words"), "words/x": "one"}
    package, cache = write(tmp_path, files), tmp_path / "cache"
    digests = [_digest(package, cache)]
    (package / "words" / "x").write_text("two")
    digests.append(_digest(package, cache))
    (package / "words" / "y").write_text("")
    digests.append(_digest(package, cache))
    assert digests[-1] == _digest(package, None)
    (package / "words" / "x").unlink()
    digests.append(_digest(package, cache))
    assert len(set(digests)) == 4


def test_a_module_that_comes_or_goes_is_seen(tmp_path: Path) -> None:
    files = {
        "a": "from pkg.inner import g\ndef f():\n    return g, 'pkg.late:x', f'pkg.inner.{1}'\n",
        "inner/__init__": "",
    }
    package, cache = write(tmp_path, files), tmp_path / "cache"
    digests = [_digest(package, cache)]
    (package / "inner" / "g.py").write_text("Y = 1\n")
    digests.append(_digest(package, cache))
    (package / "late.py").write_text("x = 1\n")
    digests.append(_digest(package, cache))
    (package / "inner" / "h.py").write_text("Z = 1\n")
    digests.append(_digest(package, cache))
    (package / "inner" / "g.py").unlink()
    digests.append(_digest(package, cache))
    assert digests[-1] == _digest(package, None)
    assert len(set(digests)) == 5


def test_after_a_change_the_cache_settles_again(tmp_path: Path) -> None:
    """What was looked for and has come since, and modules that have gone, do not have all worked out anew for ever."""
    files = {"a": "def f():\n    return 'pkg.late:x', 'pkg.gone:y'\n", "gone": "y = 1\n"}
    package, cache = write(tmp_path, files), tmp_path / "cache"
    _digest(package, cache)
    (package / "late.py").write_text("x = 1\n")
    (package / "gone.py").unlink()
    (package / "a.py").write_text("def f():\n    return 1\n")
    _settle(package)
    time.sleep(0.15)  # files that have just changed are not taken at their word
    _digest(package, cache)
    written = cache.stat().st_mtime_ns
    _digest(package, cache)
    assert cache.stat().st_mtime_ns == written
    assert b'"y"' not in cache.read_bytes()


def test_a_file_that_was_just_changed_is_compared_by_its_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    now = time.time_ns()
    monkeypatch.setattr("eval_pipeline.fingerprints.fingerprints.state_of", lambda path: [1, now, 1, 1])
    first = _digest(package, cache)
    (package / "c.py").write_text("X = 2\n")
    assert _digest(package, cache) != first


def test_a_copy_of_the_package_reads_only_what_differs(tmp_path: Path, read: list[str]) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    first = _digest(package, cache)
    copy = tmp_path / "copy"
    shutil.copytree(package, copy)
    read.clear()
    assert Fingerprints(cache, roots={"pkg": copy}).of("pkg.a:f").code == first
    assert read == []
    (copy / "c.py").write_text("X = 2\n")
    assert Fingerprints(cache, roots={"pkg": copy}).of("pkg.a:f").code != first
    assert read == ["pkg.c"]


@pytest.mark.parametrize("share", [0, 1, 10, 100, 400, -200, -1])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, share: int) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    first = _digest(package, cache)
    whole = cache.read_bytes()
    for content in (whole[:share], b"{}", b"[1]\n", b"null", b"\xff\x00", whole.replace(b"f", b"e"), whole.upper()):
        cache.write_bytes(content)
        assert _digest(package, cache) == first
        assert _digest(package, cache) == first


def test_a_module_whose_line_is_damaged_is_read_again(tmp_path: Path) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    _digest(package, cache)
    mark, head, *lines = cache.read_bytes().split(b"\n")
    cache.write_bytes(b"\n".join([mark, head, *(line.replace(b"1", b"2") for line in lines)]))
    assert _digest(package, cache, "pkg.b:g") == _digest(package, None, "pkg.b:g")


@pytest.mark.parametrize("share", [0, 10, -10])
def test_what_is_damaged_is_never_kept_as_if_it_were_whole(tmp_path: Path, share: int) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    _digest(package, cache)
    mark, head, *lines = cache.read_bytes().split(b"\n")
    cache.write_bytes(b"\n".join([mark, head, *(line[:share] for line in lines)]))
    for place in ("pkg.c:X", "pkg.b:g", "pkg.a:f"):  # each reads more modules than the one before, and all are written
        assert _digest(package, cache, place) == _digest(package, None, place)


def test_a_cache_of_another_version_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    first = _digest(package, cache)
    read.clear()
    monkeypatch.setattr("eval_pipeline.fingerprints.cache.form", lambda: "another")
    assert _digest(package, cache) == first
    assert len(read) == 4


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    package = write(tmp_path, FILES)
    (tmp_path / "file").touch()
    assert _digest(package, tmp_path / "file" / "cache") == _digest(package, None)
    (tmp_path / "folder").mkdir()
    assert _digest(package, tmp_path / "folder") == _digest(package, None)
    assert list((tmp_path / "folder").iterdir()) == []
    assert list(tmp_path.glob(".fingerprints-*")) == []


def test_stops_and_roots_are_told_apart(tmp_path: Path) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    first = _digest(package, cache)
    stopped = Fingerprints(cache, roots={"pkg": package}, stops=["pkg.b:g"])
    assert stopped.of("pkg.a:f").code != first


def test_one_process_sees_each_file_once(tmp_path: Path) -> None:
    package = write(tmp_path, FILES)
    found = Fingerprints(roots={"pkg": package})
    first = found.of("pkg.a:f")
    (package / "c.py").write_text("X = 2\n")
    assert found.of("pkg.a:f") is first


def test_an_error_is_not_kept(tmp_path: Path) -> None:
    package, cache = write(tmp_path, FILES), tmp_path / "cache"
    (package / "c.py").write_text("X = ")
    with pytest.raises(FingerprintError):
        _digest(package, cache)
    (package / "c.py").write_text("X = 1\n")
    assert _digest(package, cache) == _digest(package, None)


def test_a_module_that_becomes_a_package_is_read_again(tmp_path: Path) -> None:
    """The same source means something else: `.` is another package."""
    files = {"m": "from .b import g\ndef f():\n    return g()\n", "b": "def g():\n    return 1\n"}
    package, cache = write(tmp_path, files | {"m2/b": "def g():\n    return 2\n"}), tmp_path / "cache"
    first = _digest(package, cache, "pkg.m:f")
    (package / "m2").rename(package / "m")
    (package / "m.py").rename(package / "m" / "__init__.py")
    assert _digest(package, cache, "pkg.m:f") == _digest(package, None, "pkg.m:f") != first
