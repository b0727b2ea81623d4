"""The workspace passed to every stage: paths, record, suites, model versions, and the protocol for progress."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.installed.plugins import PluginError
from eval_pipeline.core.model import Case, Json
from eval_pipeline.core.model_versions import ModelVersion, PromptedVersion
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline.providers.registry import takes_prompts, traits_of
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, GOLD_OVERRIDES, MODEL_VERSIONS
from eval_pipeline.suites.headers import SuiteSource, find_suites
from eval_pipeline.suites.overrides import NOTHING_OVERRIDDEN, ScoredGold, override_from_row, scored_gold
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Acts, Damageable, Shares
from eval_pipeline.tracks.registry import prompt_complaints
from eval_pipeline.workspace.asked.ranges import overlapping
from eval_pipeline.workspace.homes.imported import Imported
from eval_pipeline.workspace.homes.places import place_of

T = TypeVar("T")


class Progress(Protocol):
    """Receives the progress of a stage."""

    def start(self, label: str, total: int) -> None: ...

    def advance(self, label: str, steps: int = 1) -> None: ...

    def finish(self, label: str) -> None: ...


class Silent:
    """Ignores progress."""

    def start(self, label: str, total: int) -> None: ...

    def advance(self, label: str, steps: int = 1) -> None: ...

    def finish(self, label: str) -> None: ...


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of a stage.

    Attributes:
        rows: number of rows in its main table.
        content_hash: content hash of its main table.
        reused: whether nothing had changed, so that nothing was done.
        facts: headline numbers for people (metadata in Dagster, lines on the terminal).
    """

    rows: int
    content_hash: str
    reused: bool
    facts: Mapping[str, Json] = field(default_factory=dict)


RETIRED = "retired"
"""Column of `model_versions`; also a key in the footer of its record file if it is true."""

CARRIERS = (
    "eval_pipeline.asking",
    "eval_pipeline.core.system.bucket_address",
    "eval_pipeline.core.reading.complaints",
    "eval_pipeline.core.errors",
    "eval_pipeline.core.installed.plugins",
    "eval_pipeline.core.home",
    "eval_pipeline.core.system.interrupts",
    "eval_pipeline.core.system.stopped",
    "eval_pipeline.fingerprints",
    "eval_pipeline.providers.registry",
    "eval_pipeline.state",
    "eval_pipeline.store",
    "eval_pipeline.tracks.registry",
    "eval_pipeline.workspace",
)
"""Modules that only pass values along and decide no figure; fingerprints do not follow them.

The track, provider or metric in use is named as a root instead.
"""


@lru_cache
def _fingerprints(cache: Path) -> Fingerprints:
    return Fingerprints(cache, stops=CARRIERS)


class Workspace:
    """One home as seen by the stages. Cheap to create; reads lazily."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.place = place_of(home)
        self.record = self.place.record()
        self._tracks: dict[str, Track] = {}
        self._remembered: dict[str, tuple[dict[str, str], Any]] = {}

    @property
    def fingerprints(self) -> Fingerprints:
        """Fingerprints of the code; shared by all workspaces of the process."""
        return _fingerprints(self.home.fingerprints)

    @cached_property
    def imported(self) -> Imported:
        """Suites, model versions and predictions that were imported."""
        return self.place.imported()

    @cached_property
    def suites(self) -> dict[str, SuiteSource]:
        """Every suite by name, including broken ones."""
        self.imported.refresh()
        return find_suites(self.home.suite_folders)

    @cached_property
    def model_versions(self) -> dict[str, ModelVersion]:
        """Every model version by name, also with each prompt that a suite has. Raises InputError if a file is wrong."""
        self.imported.refresh()
        listed = load_model_versions(self.home.model_version_files, lambda version: prompt_complaints(version.prompt))
        made: dict[str, ModelVersion] = {}
        for version in listed.values():
            prompts = self.prompts if self.prompts and takes_prompts(version) else ()
            made |= {one.name: one for one in (version, *(PromptedVersion.of(version, name) for name in prompts))}
        return made | listed  # a name in a file wins

    @cached_property
    def prompts(self) -> tuple[str, ...]:
        """The names of the prompts that suites have."""
        headers = (source.header for source in self.suites.values() if source.header)
        return tuple(dict.fromkeys(name for header in headers for name in header.prompts))

    def is_offered(self, version: ModelVersion) -> bool:
        """Whether a model version is active; with a prompt, whether it is without."""
        return self.model_versions[version.base].active if isinstance(version, PromptedVersion) else version.active

    def is_retired(self, model_version: str) -> bool:
        """Whether no file lists the model version any more; if no valid file exists, the record decides."""
        if any(path.exists() for path in self.home.model_version_files):
            with suppress(InputError):  # reported elsewhere
                listed = self.model_versions
                # A suite that cannot be read may have the prompt.
                unread = any(source.header is None for source in self.suites.values())
                return model_version not in listed and not (unread and model_version.rpartition("+")[0] in listed)
        header = self.record.header(MODEL_VERSIONS, RecordKey.of_model_version(model_version))
        return header is not None and RETIRED in header.made_from

    def suite(self, name: str) -> SuiteSource:
        """Returns the suite of that name or folder name. Raises UsageError that lists the known names."""
        found = self.suites.get(name) or next((s for s in self.suites.values() if s.folder.name == name), None)
        if found is None:
            raise UsageError(f"unknown suite '{name}'; known: {', '.join(self.suites) or 'none'}")
        return found

    def model_version(self, name: str) -> ModelVersion:
        """Returns the model version of that name. Raises UsageError that lists the known names."""
        found = self.model_versions.get(name)
        if found is None:
            base, _, prompt = name.rpartition("+")
            if base in self.model_versions:
                self._refuse_prompt(self.model_versions[base], prompt)
            listed = [one.name for one in self.model_versions.values() if not isinstance(one, PromptedVersion)]
            raise UsageError(f"unknown model version '{name}'; known: {', '.join(listed) or 'none'}")
        return found

    def _refuse_prompt(self, version: ModelVersion, prompt: str) -> NoReturn:
        if isinstance(version, PromptedVersion):
            raise UsageError(f"'{version.name}' names a prompt already; name '{version.base}' or leave out '{prompt}'")
        if prompt in self.prompts:
            raise UsageError(
                f"'{version.name}' cannot be asked with the prompt '{prompt}': no prompt of a suite reaches the "
                f"provider '{version.provider}'"
            )
        known = ", ".join(self.prompts) or "none; docs/prompts.md says how to write one"
        raise UsageError(f"no suite has the prompt '{prompt}' of '{version.name}+{prompt}'; known: {known}")

    def track(self, suite: str) -> Track:
        """Returns the track of a suite, with the metrics that the suite asks for."""
        if suite not in self._tracks:
            self._tracks[suite] = self.suite(suite).track()
        return self._tracks[suite]

    def why_not(self, model_version: str, suite: str) -> str | None:
        """Returns why a model version cannot be evaluated on a suite, to complete a sentence about it.

        Returns None if it can be, and also for an unreadable suite, whose problems are reported elsewhere.
        """
        source, version = self.suite(suite), self.model_version(model_version)
        if source.header is None:
            return None
        if isinstance(version, PromptedVersion) and version.suite_prompt not in source.header.prompts:
            return f"needs the prompt '{version.suite_prompt}', which the suite does not have"
        track = source.track()
        modes = track.failure_modes if isinstance(track, Damageable) else ()
        try:
            traits = traits_of(version.provider)
            if isinstance(track, Acts) and not traits.has_tools:
                return f"cannot work with tools, as the provider '{version.provider}' hands none on to the model"
            if traits.own_agent and not isinstance(track, Acts):
                return f"is a program that works on tasks by itself, and the track '{track.name}' has none"
            if isinstance(track, Acts) and version.batch:
                return (
                    "asks in batches, which answer once in hours, but an agent asks after each step: leave `batch` out"
                )
            return traits.why_not(version, source.name, track.name, modes)
        except PluginError as error:
            return f"cannot be asked: {error}"

    def cases(self, suite: str) -> tuple[Case, ...]:
        """Returns the cases of a suite from the record. Raises UsageError if there are none yet."""
        key = RecordKey.of_suite(suite)
        header = self.record.header(CASES, key)
        if header is None:
            raise UsageError(f"the cases of '{suite}' are not in the record yet; materialise {suite}/cases first")
        held = {"of": str(key), CASES.name: header.content_hash}
        return self.remembered(CASES.name, held, lambda: self._read_cases(suite, key))

    def cases_within(self, suite: str, within: range, ids: Collection[str] | None = None) -> tuple[Case, ...]:
        """Returns the cases at these positions in the suite, or those of them with some ids.

        They are read and kept apart from all others to save memory.
        """
        return self._read_cases(suite, RecordKey.of_suite(suite), within, ids)

    def _read_cases(
        self, suite: str, key: RecordKey, within: range | None = None, ids: Collection[str] | None = None
    ) -> tuple[Case, ...]:
        rows = list(self._case_rows(key, within, ids))
        track, shared = self.track(suite), self._shared(suite, key)
        return tuple(
            track.read_case(parse_json(row["content"]), suite, row["source_file"], row["source_line"], shared)
            for row in rows
        )

    def _case_rows(self, key: RecordKey, within: range | None, ids: Collection[str] | None) -> Iterator[dict[str, Any]]:
        wanted = None if ids is None else pa.array(ids, pa.string())
        for group in self._case_groups(key, within):
            yield from (group if wanted is None else group.filter(pc.is_in(group["case_id"], wanted))).to_pylist()

    def _case_groups(self, key: RecordKey, within: range | None) -> Iterator[pa.Table]:
        columns = ["case_id", "source_file", "source_line", "content"]
        if within is None:
            yield from self.record.row_groups(CASES, key, columns)
            return
        spans = self._case_spans(key)
        chosen = overlapping(spans, within)
        for number, group in zip(chosen, self.record.row_groups(CASES, key, columns, chosen), strict=False):
            start = spans[number].start
            first, end = max(within.start - start, 0), min(within.stop - start, group.num_rows)
            yield group.slice(first, end - first)

    def _case_spans(self, key: RecordKey) -> list[range]:
        """Returns the places of the cases in each row group of their file."""
        header = self.record.header(CASES, key)
        held = {"of": str(key), CASES.name: header.content_hash if header else ""}

        def read() -> list[range]:
            rows = (group.num_rows for group in self.record.row_groups(CASES, key, ["turns"]))
            return [range(first, end) for first, end in pairwise(accumulate(rows, initial=0))]

        return self.remembered("places of cases", held, read)

    def gold(self, suite: str) -> ScoredGold:
        """Returns the gold used for scoring a suite's turns, from the record.

        Raises:
            UsageError: its cases are not in the record yet.
        """
        key = RecordKey.of_suite(suite)
        header, cases = self.record.header(GOLD_OVERRIDES, key), self.record.header(CASES, key)
        if header is None or cases is None or not header.rows:
            return NOTHING_OVERRIDDEN
        held = {"of": str(key), CASES.name: cases.content_hash, GOLD_OVERRIDES.name: header.content_hash}
        return self.remembered(GOLD_OVERRIDES.name, held, lambda: self._read_gold(suite, key))

    def _read_gold(self, suite: str, key: RecordKey) -> ScoredGold:
        rows = self.record.read(GOLD_OVERRIDES, key).to_pylist()
        overrides = [override_from_row(row) for row in rows]
        wanted = {override.case_id for override in overrides}
        contents = {row["case_id"]: row["content"] for row in self._case_rows(key, None, wanted)}
        cases = {case.id: case for case in self._read_cases(suite, key, None, wanted)}
        return scored_gold(self.track(suite), suite, overrides, cases, contents, self._shared(suite, key))

    def _shared(self, suite: str, key: RecordKey) -> Any:
        """Returns what the cases of a suite share; kept, as cases may be read a few at a time."""
        header = self.record.header(CASES, key)
        held = {"of": str(key), CASES.name: header.content_hash if header else ""}
        return self.remembered("shared", held, lambda: self._load_shared(suite, key))

    def _load_shared(self, suite: str, key: RecordKey) -> Any:
        """Returns what the cases of a suite share, from the record."""
        track, source = self.track(suite), self.suite(suite)
        if not isinstance(track, Shares):
            return None
        tables = {table.name: self.record.read(table, key) for table in track.suite_tables}
        return track.load_shared(tables, source.require().options, source.folder)

    def forget(self) -> None:
        """Drops all remembered values and frees their memory, which the next step needs outside Python."""
        self._remembered.clear()
        self.give_back()

    def give_back(self) -> None:
        """Gives the memory that a step has freed back to the system; another step may need it outside Python."""
        pa.default_memory_pool().release_unused()
        give_back_memory()

    def remembered(self, what: str, hashes: Mapping[str, str], load: Callable[[], T]) -> T:
        """Returns the value remembered under that name if it was loaded from contents with these hashes.

        Otherwise loads it.
        """
        known = self._remembered.get(what)
        if known is None or known[0] != hashes:
            self._remembered.pop(what, None)
            known = self._remembered[what] = (dict(hashes), load())
        loaded: T = known[1]
        return loaded
