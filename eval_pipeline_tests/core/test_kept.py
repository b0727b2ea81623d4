"""What is made once for all processes, and sealed files: what is damaged is made anew, or as good as missing."""

from pathlib import Path

import pytest
from jinja2 import Environment

from eval_pipeline.core.hashing import kept as module
from eval_pipeline.core.hashing.kept import kept, read_sealed, write_sealed
from eval_pipeline.core.hashing.templates import KeptLoader


class Making:
    def __init__(self, content: bytes = b"made") -> None:
        self.times = 0
        self.content = content

    def __call__(self) -> bytes:
        self.times += 1
        return self.content


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_FOLDER", tmp_path)
    return tmp_path


def test_what_was_made_from_the_same_is_found_again(folder: Path) -> None:
    make = Making()
    assert [kept("a", ["1", "2"], make) for _ in range(3)] == [b"made"] * 3
    assert make.times == 1
    for name, made_from in [("b", ["1", "2"]), ("a", ["1"]), ("a", ["12"]), ("a", ["2", "1"])]:
        assert kept(name, made_from, other := Making(b"other")) == b"other"
        assert other.times == 1
    assert kept("a", ["1", "2"], make) == b"made"


@pytest.mark.parametrize("cut", [0, 5, 32, 35])
def test_what_is_damaged_is_made_anew(folder: Path, cut: int) -> None:
    kept("a", ["1"], Making())
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:cut], whole[:cut] + b"?" + whole[cut + 1 :]):
        path.write_bytes(damaged)
        assert kept("a", ["1"], make := Making()) == b"made"
        assert (make.times, path.read_bytes()) == (1, whole)


def test_only_some_are_kept(folder: Path) -> None:
    kept("b", ["1"], Making())
    for number in range(20):
        kept("a", [str(number)], Making())
    assert len(list(folder.glob("a-*"))) == 8
    assert len(list(folder.glob("b-*"))) == 1
    kept("a", ["19"], make := Making())
    assert make.times == 0


def test_where_nothing_can_be_kept_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FOLDER", tmp_path / "nowhere")
    make = Making()
    assert [kept("a", ["1"], make) for _ in range(2)] == [b"made"] * 2
    assert make.times == 2


def test_an_error_is_passed_on_and_nothing_is_kept(folder: Path) -> None:
    def fails() -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept("a", ["1"], fails)
    assert not list(folder.iterdir())


def test_what_was_written_is_read_and_nothing_else(tmp_path: Path) -> None:
    file, text = tmp_path / "new" / "file.json", '{"a": "ü\\n"}\n'
    assert read_sealed(file) is None
    write_sealed(file, text)
    assert read_sealed(file) == text
    data = file.read_bytes()
    for place in range(len(data)):
        for bit in range(8):
            file.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
            assert read_sealed(file) is None
    for length in range(len(data)):
        file.write_bytes(data[:length])
        assert read_sealed(file) is None
    assert [path.name for path in file.parent.iterdir()] == ["file.json"]


def test_a_template_is_compiled_once_for_all_processes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "{{ 1 + what }}"
    monkeypatch.setattr(KeptLoader, "get_source", lambda *_: (source, "a/b.j2", lambda: True))

    def rendered() -> str:
        return Environment(loader=KeptLoader("eval_pipeline.view")).get_template("a/b.j2").render(what=2)

    assert rendered() == "3"
    monkeypatch.setattr(Environment, "compile", lambda *_: pytest.fail("compiled again"))
    assert rendered() == "3"
    source = "{{ 2 + what }}"
    with pytest.raises(pytest.fail.Exception):
        rendered()
