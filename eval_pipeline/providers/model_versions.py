"""Reading and writing `model_versions.yaml`: every mistake is told with its file, line, entry and field."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from eval_pipeline.core.complaints import Complaint, Location, complaints, dotted
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.foreign import MOST_DOCUMENT_BYTES, check_yaml, read_text
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.plugins import PluginError
from eval_pipeline.core.private import file_mode
from eval_pipeline.providers.prices import has_price
from eval_pipeline.providers.registry import check_settings, traits_of
from eval_pipeline.providers.validation import SettingsError

Check = Callable[[ModelVersion], Iterable[Complaint]]
"""Looks at a model version for what only others can know: `prompt` is checked by the tracks."""

_TOP = "model_versions"
_TEXTS = {"name", "provider", "model", "priced_as"}
_HEADER = "# Written by `eval-pipeline import`; entries of your own belong in data/model_versions.yaml.\n"


def _unchecked(_: ModelVersion) -> tuple[Complaint, ...]:
    return ()


def load_model_versions(files: Sequence[Path], check: Check = _unchecked) -> dict[str, ModelVersion]:
    """The model versions of the files by name, in order; a file that does not exist has none.

    `check` says what else is wrong with one that is sound by itself.

    Raises:
        InputError: with everything that is wrong in any of the files.
    """
    problems: list[Problem] = []
    versions: dict[str, ModelVersion] = {}
    places: dict[str, str] = {}
    for path in files:
        for entry in _read(path, check, problems):
            name = entry.version.name
            if name in places:
                told = f"model version '{name}' is already defined in {places[name]}; give one of them another name"
                problems.append(Problem(str(path), entry.line, "name", told))
                continue
            places[name] = f"{path}:{entry.line}"
            versions[name] = entry.version
    if problems:
        raise InputError(problems)
    return versions


def save_imported(path: Path, version: ModelVersion) -> None:
    """Adds an entry to the file of imported model versions, or replaces the one of its name.

    The file is replaced as a whole: a reader sees the old one or the new one. Imports at the same time wait.

    Raises:
        InputError: the file as it is cannot be read.
        OSError: the new one cannot be written.
    """
    with _imported(path) as versions:
        versions[version.name] = version


def forget_imported(path: Path, name: str, suites: Collection[str] | None, *, dry_run: bool) -> bool:
    """Takes an entry out of the file of imported model versions; whether it goes.

    Args:
        path: the file, which need not exist.
        name: of the entry.
        suites: only their predictions go; None: all. An entry without any is gone.
        dry_run: only look.

    Raises:
        InputError: the file as it is cannot be read.
        OSError: the new one cannot be written.
    """
    entry = load_model_versions([path]).get(name)
    if entry is None:
        return False
    left = {suite: found for suite, found in entry.predictions.items() if suites is not None and suite not in suites}
    if not dry_run and (suites is None or left != entry.predictions):
        with _imported(path) as versions:
            versions.pop(name, None)
            if left:
                versions[name] = entry.model_copy(update={"predictions": left})
    return suites is None or not left


@contextmanager
def _imported(path: Path) -> Iterator[dict[str, ModelVersion]]:
    """The entries of the file, which has what is made of them when the block ends; others who change it wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        versions = load_model_versions([path])
        yield versions
        entries = [_as_written(entry) for entry in versions.values()]
        text = _HEADER + yaml.safe_dump({_TOP: entries}, sort_keys=False, allow_unicode=True, width=120)
        _replace(path, text)
        os.fsync(folder)
    finally:
        os.close(folder)  # and with it goes the lock


def _as_written(version: ModelVersion) -> dict[str, Any]:
    named = {"name": version.name, "provider": version.provider}
    return named | version.model_dump(mode="json", exclude_defaults=True, exclude=set(named))


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, file_mode())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@dataclass(frozen=True, slots=True)
class _Entry:
    version: ModelVersion
    line: int


def _read(path: Path, check: Check, problems: list[Problem]) -> Iterator[_Entry]:
    """The sound entries of a file; what is wrong with the others is added to the problems."""
    try:
        composed = _compose(path)
    except InputError as error:
        problems.extend(error.problems)
        return
    if composed is None:
        return
    root, value = composed
    for mapping, key in _repeated_keys(root):
        told = f"appears twice in the mapping that begins in line {_line(mapping)}"
        problems.append(Problem(str(path), _line(key), str(key.value), told))
    if not isinstance(value, dict) or not isinstance(value.get(_TOP), list) or len(value) > 1:
        problems.append(Problem(str(path), _line(root), "", f"expected nothing but a list under the key '{_TOP}'"))
        return
    for node, entry in zip(_entry_nodes(root), value[_TOP], strict=True):
        found = _checked(entry)
        if isinstance(found, ModelVersion):
            version, found = found, tuple(check(found))
            if not found:
                yield _Entry(version, _line(node))
                continue
        named = entry.get("name") if isinstance(entry, dict) else None
        whose = f" (model version '{named}')" if named else ""
        for location, message in found:
            problems.append(Problem(str(path), _line_at(node, location), dotted(location), message + whose))


def _compose(path: Path) -> tuple[yaml.Node, Any] | None:
    """The nodes of a file, which know their lines, and its value; None where there is nothing in it."""
    try:
        text = read_text(path, most=MOST_DOCUMENT_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(path), None, "", f"cannot read the model versions: {error}")]) from error
    try:
        check_yaml(text)
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _keep_texts(root)
        return root, loader.construct_document(root)
    except Exception as error:  # constructors of YAML's own types raise what they like
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = None if mark is None else mark.line + 1
        told = getattr(error, "problem", None) or error
        raise InputError([Problem(str(path), line, "", f"not valid YAML: {told}")]) from error


def _checked(entry: Any) -> ModelVersion | tuple[Complaint, ...]:
    """The model version in an entry, or what is wrong with it."""
    if not isinstance(entry, dict):
        return (Complaint((), "expected a mapping with at least name and provider"),)
    unknown = _unknown_provider(entry.get("provider"))
    try:
        version = ModelVersion.model_validate(entry)
    except ValidationError as error:
        return unknown + complaints(error, ModelVersion)
    if unknown:
        return unknown
    try:
        check_settings(version)
    except PluginError:
        return version  # what is wrong with its provider is told where it is used: it must not stop the others
    except SettingsError as error:
        return error.complaints
    except UsageError as error:
        return (Complaint((), str(error)),)
    if version.max_cost_usd is not None and not (traits_of(version.provider).own_prompt or has_price(version)):
        told = f"the price of {version.priced_as or version.model or 'its model'} is not known; give `price`, or leave "
        return (Complaint(("max_cost_usd",), f"{told}it out and set max_tokens_total"),)
    return version


def _unknown_provider(provider: Any) -> tuple[Complaint, ...]:
    """What is wrong with a provider's name; a plug-in that cannot be used has a good one."""
    try:
        if isinstance(provider, str):
            traits_of(provider)
    except PluginError:
        return ()
    except UsageError as error:
        return (Complaint(("provider",), str(error)),)
    return ()


def _repeated_keys(node: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Keys that a mapping has twice, of which YAML would silently take the last."""
    seen_nodes: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if id(node) in seen_nodes:  # an alias
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        yield node, key
                    seen.add(key.value)
                waiting.append(value)


def _keep_texts(root: yaml.Node) -> None:
    """Has `provider: null`, `model: 4.5` and `name: on` mean the texts they look like."""
    for entry in _entry_nodes(root):
        if isinstance(entry, yaml.MappingNode):
            for key, value in entry.value:
                if key.value in _TEXTS and isinstance(value, yaml.ScalarNode) and value.value not in {"", "~"}:
                    value.tag = "tag:yaml.org,2002:str"


def _entry_nodes(root: yaml.Node) -> list[yaml.Node]:
    entries = _child(root, _TOP)
    return entries[0].value if entries is not None and isinstance(entries[0], yaml.SequenceNode) else []


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The value under a key or index, and the node that names its place; None where there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return value, key
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _line_at(node: yaml.Node, location: Location) -> int:
    """The line of a place in an entry, or of the deepest thing around it that is there."""
    line = _line(node)
    for part in location:
        found = _child(node, part)
        if found is None:
            break
        node, named = found
        line = _line(named)
    return line


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
