"""The prompts of a suite: `prompts` in `suite.yaml`, and files in the folder `prompts` beside it (docs/prompts.md)."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from eval_pipeline.core.covering.suite_prompts import SuitePrompt
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Case
from eval_pipeline.core.model_versions import ModelVersion, PromptedVersion
from eval_pipeline.core.reading.complaints import Location, complaints
from eval_pipeline.core.reading.entries import FileEntry, only_entry, problem_at
from eval_pipeline.core.reading.foreign import why_unread
from eval_pipeline.tracks.base import Track

if TYPE_CHECKING:
    from eval_pipeline.suites.headers import SuiteSource

PROMPTS_FOLDER = "prompts"
"""Folder of a suite with a file a prompt, unless `cases` begins with its name: then it has cases."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def prompt_files(folder: Path, cases: Sequence[str]) -> list[Path]:
    """Returns the files with prompts in a suite's folder, sorted."""
    if any(pattern.startswith(f"{PROMPTS_FOLDER}/") for pattern in cases):
        return []
    return sorted(path for ending in ("yaml", "yml") for path in (folder / PROMPTS_FOLDER).glob(f"*.{ending}"))


def read_prompts(
    suite_file: FileEntry, inline: Mapping[str, SuitePrompt], files: Sequence[Path]
) -> dict[str, SuitePrompt]:
    """Returns the prompts by name: those of `suite.yaml`, then those of files, which are named like them.

    Raises:
        InputError: lists every problem.
    """
    found = dict(inline)
    misnamed = (name for name in inline if not NAME.fullmatch(name))
    problems = [problem_at(suite_file, ("prompts", name), _WRONG_NAME) for name in misnamed]
    for path in files:
        if not NAME.fullmatch(path.stem):
            problems.append(Problem(str(path), None, "", _WRONG_NAME))
        elif path.stem in found:
            problems.append(Problem(str(path), None, "", f"there is another prompt '{path.stem}'; rename one of them"))
        else:
            try:
                entry = only_entry(path, "before, after, instructions, examples or template")
                found[path.stem] = SuitePrompt.model_validate(entry.raw)
            except InputError as error:
                problems += error.problems
            except OSError as error:
                problems.append(Problem(str(path), None, "", f"cannot be read: {why_unread(error)}"))
            except ValidationError as error:
                problems += [problem_at(entry, *told) for told in complaints(error, SuitePrompt)]
    if problems:
        raise InputError(problems)
    return found


_WRONG_NAME = "names a prompt; expected at most 40 letters, digits, '.', '_' or '-'"


def prompt_of(source: "SuiteSource", version: ModelVersion) -> SuitePrompt | None:
    """Returns the prompt of a suite that a model version is asked with; None: the track's own, or an unknown one.

    Its `hash` is part of what an evaluation is: `stages.asked.generating_settings` keeps it with the answers.
    """
    if not isinstance(version, PromptedVersion) or source.header is None:
        return None
    return source.header.prompts.get(version.suite_prompt)


def check_prompts(source: "SuiteSource", track: Track, case: Case, fields: Collection[str]) -> Iterator[Problem]:
    """Yields what is wrong with the prompts of a suite, given one of its cases and the `prompt_fields` of all."""
    prompts = source.require().prompts
    if not prompts:
        return
    parts = track.prompt_parts(case, case.turns[0], [], track.prompt_versions[-1])
    for name, prompt in prompts.items():
        for place, message in parts.complaints(prompt, fields):
            yield _problem(source, name, place, message)


def _problem(source: "SuiteSource", name: str, place: Location, message: str) -> Problem:
    path = next((f for f in prompt_files(source.folder, source.require().patterns()) if f.stem == name), None)
    if path is not None:
        return problem_at(only_entry(path), place, message)
    return problem_at(only_entry(source.folder / "suite.yaml"), ("prompts", name, *place), message)
