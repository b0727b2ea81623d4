"""Makes the worlds of imported tasks, and reads what several forms of these have."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.foreign import check_yaml
from eval_pipeline.tracks.importing import add_origin
from eval_pipeline_plugins.foreign_entries import read_text
from eval_pipeline_plugins.tracks.agent.cases.worlds import FILES, FOLDER, TOLD

_MOST_NAMES = 20


def files_in(top: Path) -> dict[str, Path]:
    """Returns the files of a folder by their place in it, without links."""
    found = {path.relative_to(top).as_posix(): path for path in sorted(top.rglob("*"))}
    return {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}


def read_yaml(path: Path) -> Json:
    """Parses a YAML file. Raises InputError with the line if it does not parse."""
    text = read_text(path)
    try:
        check_yaml(text)
        found: Json = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise InputError([Problem(str(path), line, "", f"is no YAML: {error}")]) from None
    return found


def make_world(
    folder: Path,
    name: str,
    files: Mapping[str, Path],
    description: str = "",
    databases: Mapping[str, Mapping[str, Json]] | None = None,
) -> Path:
    """Copies files into a new world and returns its folder.

    Args:
        folder: folder of the suite that is made.
        name: the world's.
        files: the user's files, by their place in the world.
        description: what models are told; default: names of the files.
        databases: as in `world.yaml`.
    """
    world = folder / FOLDER / name
    for place, path in files.items():
        copy = world / FILES / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        add_origin(folder, copy, path)
    (world / FILES).mkdir(parents=True, exist_ok=True)
    listed = ", ".join(list(files)[:_MOST_NAMES]) + (", …" if len(files) > _MOST_NAMES else "")
    told: dict[str, Json] = {"description": description or f"The files of the task: {listed}."}
    told |= {"databases": dict(databases)} if databases else {}
    (world / TOLD).write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")
    return world
