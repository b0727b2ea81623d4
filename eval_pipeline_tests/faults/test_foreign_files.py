"""Malformed files: each is told in a sentence, none ends the process, the healthy suite beside them is evaluated."""

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import IO, cast

import pytest
import yaml

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.entries import read_entries
from eval_pipeline.core.reading.foreign import SafeLoader, check_yaml
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline_plugins.tracks.sql.cases import source
from eval_pipeline_tests.faults.malformed import FAMILIES, MAY_BE_READ, TARGETS, put
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import ROOT, Lab, command

MEMORY = 6 << 30
PATIENCE_S = 200.0
LONGEST = 1_000
"""Characters of a sentence, path included."""


@contextmanager
def reader(lab: Lab) -> Iterator[tuple[IO[str], IO[str], "subprocess.Popen[str]"]]:
    """A process that reads file after file, with bounds that a file which is read whole would break."""
    process = subprocess.Popen(
        [sys.executable, "-m", "eval_pipeline_tests.faults.malformed"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | lab.environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )  # fmt: skip
    with process:
        yield cast("IO[str]", process.stdin), cast("IO[str]", process.stdout), process
        process.kill()


def campaign(lab: Lab, folder: Path, count: int) -> Counter[str]:
    rng, told = random.Random(SEED), Counter[str]()
    print(f"seed {SEED}")
    lab.suite("healthy")
    with reader(lab) as (asking, answers, process):
        for number in range(count):
            target, make = rng.choice(TARGETS), rng.choice(FAMILIES)
            place = folder / f"n{number}" / f"s{number}"
            path = put(place, target, make, rng)
            what = f"{make.__name__} {target} {path} (seed {SEED})"
            asking.write(json.dumps([target, str(path)]) + "\n")
            asking.flush()
            patience = Timer(PATIENCE_S, process.kill)
            patience.start()
            line = answers.readline()
            patience.cancel()
            assert line, f"the process has ended with {process.wait()}: {what}"
            said, fault, healthy = json.loads(line)
            assert not fault, f"{what}\n{fault}"
            assert healthy == 2, what
            assert said or make in MAY_BE_READ, f"nothing was said: {what}"
            for sentence in said:
                assert "\n" not in sentence.strip(), f"{what}\n{sentence}"
                assert len(sentence) < LONGEST, f"{what}\n{sentence[:3000]}"
            told["told" if said else "read"] += 1
            shutil.rmtree(place.parent)
    return told


def test_a_few_malformed_files(lab: Lab, tmp_path: Path) -> None:
    told = campaign(lab, tmp_path / "files", 40)
    assert told["told"] > 20


@pytest.mark.soak
def test_three_hundred_malformed_files(lab: Lab, tmp_path: Path) -> None:
    told = campaign(lab, tmp_path / "files", 300)
    print(dict(told))
    assert told["told"] > 200


def test_a_run_evaluates_the_healthy_suite_beside_broken_ones(lab: Lab) -> None:
    lab.suite("healthy")
    lab.versions({"name": "sim", "provider": "oracle"})
    deep, laughing, pipe = (lab.home.data / "suites" / name for name in ("deep", "laughing", "pipe"))
    for folder in (deep, laughing, pipe):
        folder.mkdir()
        (folder / "suite.yaml").write_text(f"name: {folder.name}\nversion: '1'\ntrack: finqa\ncases: c.*\n")
    (deep / "c.yaml").write_text("[" * 50_000)
    lines = ["- &a0 [ha]", *(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    (laughing / "c.yaml").write_text("\n".join(lines))
    os.mkfifo(pipe / "c.yaml")
    said = command("run", "--eval-date", "2026-03-01", "--no-report")
    assert said.code == 1
    assert "deep/c.yaml:1: does not parse: is nested more than 100 deep" in said.text
    assert "laughing/c.yaml:8: does not parse: stands for more than 2,000,000 values" in said.text
    assert "pipe/c.yaml: is no regular file" in said.text
    assert lab.one("SELECT count(*) FROM turn_results WHERE correct") == 3
    for name in ("doctor", "validate"):
        assert "deep/c.yaml:1: does not parse: is nested more than 100 deep" in " ".join(command(name).text.split())


LONG = 200_000
NUMBERS = {
    "base 60": "1" + ":59" * LONG,
    "negative, base 60": "-1" + ":59" * LONG,
    "base 60 with a fraction": "1" + ":59" * LONG + ".5",
    "hexadecimal": "0x" + "f" * LONG,
    "octal": "0" + "7" * LONG,
    "binary": "0b" + "1" * LONG,
    "decimal": "1" * LONG,
    "with underscores": "1_" * LONG + "1",
    "a fraction": "1." + "1" * LONG,
    "an exponent": "1.0e+" + "9" * LONG,
    "a time": "2001-12-14 21:59:43." + "1" * LONG,
    "said to be one": '!!int "1' + ":59" * LONG + '"',
}


@pytest.mark.parametrize("what", NUMBERS)
def test_a_number_that_is_too_long_to_be_one_is_refused_before_it_is_converted(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever YAML is read: no constructor is reached. In quotes, or among letters, it is a text."""
    for kind in (SafeLoader, yaml.SafeLoader):
        monkeypatch.setattr(kind, "construct_document", lambda self, node: pytest.fail("converted"))
    (path := tmp_path / "c.yaml").write_text(f"- question: q\n- question: {NUMBERS[what]}\n")
    (problem,) = read_entries(path, "c.yaml")
    told = r"c.yaml:2: does not parse: has a number of [\d,]+ characters; expected at most 3,000, or a text in quotes"
    assert re.fullmatch(told, str(problem))
    with pytest.raises(InputError, match="has a number of"):
        load_model_versions([path])
    with pytest.raises(yaml.YAMLError, match="has a number of"):
        source._yaml(path)
    check_yaml(f"question: a{NUMBERS[what]}\nother: |\n  {NUMBERS[what]}")
    monkeypatch.undo()
    check_yaml(longest := NUMBERS[what][:2_998] + '"' * what.startswith("said"))
    assert len(str(yaml.load(longest, SafeLoader))) < 4_300


def test_long_numbers_and_keys_of_json_are_told_shortly(tmp_path: Path) -> None:
    for value in ("1" * LONG, "1e" + "9" * LONG, "-1" + "0" * LONG):
        for ending in (".json", ".jsonl"):
            (path := tmp_path / f"c{ending}").write_text('{"question": ' + value + "}")
            (problem,) = read_entries(path, path.name)
            assert isinstance(problem, Problem) and len(str(problem)) < 200
    for ending, written in ((".json", '{"%s": 1, "%s": 2}'), (".yaml", "%s: 1\n%s: 2")):
        (path := tmp_path / f"k{ending}").write_text(written.replace("%s", "k" * 900))
        (problem,) = read_entries(path, path.name)
        assert "is given twice" in str(problem) and len(str(problem)) < 200
