"""Programs that a module starts as files count by their code."""

from pathlib import Path

from eval_pipeline.fingerprints.fingerprints import Fingerprints


def code(folder: Path) -> str:
    return Fingerprints(roots={"pack": folder}).of("pack.starter:start").code


def test_a_program_among_the_data_counts_without_its_remarks(tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "starter.py").write_text('DATA_FILES = ("programs",)\n\n\ndef start():\n    return 1\n')
    (folder / "programs").mkdir()
    program = folder / "programs" / "run.py"
    program.write_text("print(1)\n")
    before = code(folder)
    program.write_text('"""Prints."""\n# one\nprint(\n    1\n)\n')
    assert code(folder) == before
    program.write_text("from math import e as x\nprint(x)\n")
    other = code(folder)
    program.write_text("from cmath import e as x\nprint(x)\n")
    assert len({before, other, code(folder)}) == 3
