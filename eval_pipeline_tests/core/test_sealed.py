"""Files with a digest in front: whatever bit of them is flipped, they are as good as missing."""

from pathlib import Path

from eval_pipeline.core.sealed import read_sealed, write_sealed


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
