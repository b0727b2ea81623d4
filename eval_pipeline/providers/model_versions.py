"""Reads `model_versions.yaml`; every mistake is reported with file, line, entry and field."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.installed.plugins import PluginError
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint, Location, complaints, dotted
from eval_pipeline.core.reading.foreign import MOST_DOCUMENT_BYTES, check_yaml, read_text, why_unread
from eval_pipeline.providers.prices import has_price
from eval_pipeline.providers.registry import check_settings, traits_of
from eval_pipeline.providers.validation import SettingsError

Check = Callable[[ModelVersion], Iterable[Complaint]]
"""Returns further complaints about a model version that only other code can find; e.g. tracks check `prompt`."""

TOP = "model_versions"
_TEXTS = {"name", "provider", "model", "priced_as"}


def _unchecked(_: ModelVersion) -> tuple[Complaint, ...]:
    return ()


def load_model_versions(files: Sequence[Path], check: Check = _unchecked) -> dict[str, ModelVersion]:
    """Loads the model versions of several files by name, in order; missing files are skipped.

    Args:
        files: the files.
        check: returns further complaints about an otherwise valid model version.

    Raises:
        InputError: lists everything that is wrong in any of the files.
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


@dataclass(frozen=True, slots=True)
class _Entry:
    version: ModelVersion
    line: int


def _read(path: Path, check: Check, problems: list[Problem]) -> Iterator[_Entry]:
    """Yields the valid entries of a file, and adds the problems of the others to `problems`."""
    try:
        composed = _compose(path)
    except InputError as error:
        problems.extend(error.problems)
        return
    if composed is None:
        return
    root, value = composed
    if not isinstance(value, dict) or not isinstance(value.get(TOP), list) or len(value) > 1:
        problems.append(Problem(str(path), _line(root), "", f"expected nothing but a list under the key '{TOP}'"))
        return
    for node, entry in zip(_entry_nodes(root), value[TOP], strict=True):
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
    """Parses a file into YAML nodes, which know their lines, and values; returns None if it is missing or empty."""
    try:
        text = read_text(path, most=MOST_DOCUMENT_BYTES)
    except FileNotFoundError as error:
        if not path.is_symlink():
            return None
        raise InputError([Problem(str(path), None, "", "is a link to a file that is not there")]) from error
    except OSError as error:
        raise InputError(
            [Problem(str(path), None, "", f"cannot read the model versions: {why_unread(error)}")]
        ) from error
    try:
        check_yaml(text)
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _keep_texts(root)
        return root, loader.construct_document(root)
    except Exception as error:  # YAML constructors may raise anything
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = None if mark is None else mark.line + 1
        told = getattr(error, "problem", None) or error
        raise InputError([Problem(str(path), line, "", f"not valid YAML: {told}")]) from error


def _checked(entry: Any) -> ModelVersion | tuple[Complaint, ...]:
    """Validates an entry; returns the model version, or the complaints about it."""
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
        return version  # problems of its provider are reported when it is used, so that the others stay usable
    except SettingsError as error:
        return error.complaints
    except UsageError as error:
        return (Complaint((), str(error)),)
    if version.max_cost_usd is not None and not (traits_of(version.provider).own_prompt or has_price(version)):
        told = f"the price of {version.priced_as or version.model or 'its model'} is not known; give `price`, or leave "
        return (Complaint(("max_cost_usd",), f"{told}it out and set max_tokens_total"),)
    return version


def _unknown_provider(provider: Any) -> tuple[Complaint, ...]:
    """Returns a complaint if the provider's name is unknown; the name of a plug-in that cannot be loaded is known."""
    try:
        if isinstance(provider, str):
            traits_of(provider)
    except PluginError:
        return ()
    except UsageError as error:
        return (Complaint(("provider",), str(error)),)
    return ()


def _keep_texts(root: yaml.Node) -> None:
    """Makes YAML read values such as `provider: null`, `model: 4.5` and `name: on` as texts."""
    for entry in _entry_nodes(root):
        if isinstance(entry, yaml.MappingNode):
            for key, value in entry.value:
                if key.value in _TEXTS and isinstance(value, yaml.ScalarNode) and value.value not in {"", "~"}:
                    value.tag = "tag:yaml.org,2002:str"


def _entry_nodes(root: yaml.Node) -> list[yaml.Node]:
    entries = _child(root, TOP)
    return entries[0].value if entries is not None and isinstance(entries[0], yaml.SequenceNode) else []


def _child(node: yaml.Node, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Returns the value under a key or index and the node at its position; None if there is none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return value, key
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _line_at(node: yaml.Node, location: Location) -> int:
    """Returns the line of a location in an entry, or of its closest existing parent."""
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
