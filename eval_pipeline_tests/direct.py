"""What `defs.running.launch` does, without Dagster: the same record, store, reports and sentences, sooner.

Tests that run evaluations use it, unless they are marked `dagster`; `defs/test_direct.py` holds it to the real one.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from eval_pipeline.analysis.comparisons.verdicts import SERVED_AS_BEFORE
from eval_pipeline.chain import runner
from eval_pipeline.chain.evaluation import COMPARING, DELIVERING, INGESTING, chain_of
from eval_pipeline.chain.stage import Chain, Check, Stage, before
from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.keeping import REPORTS
from eval_pipeline.operations.publication import Publication
from eval_pipeline.stages.checks.verdicts import Verdict
from eval_pipeline.store.tables import STATISTICS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import FAILED, RunContext, end_run, ending_failed
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.workspace import Progress, Workspace


@dataclass(frozen=True)
class Request:
    """As in `launch`."""

    partitions: Sequence[Partition]
    scope: Scope = field(default_factory=Scope)
    epoch: str = ""
    with_report: bool = True
    canary: bool = True
    publication: Publication | None = None


@dataclass
class Finished:
    """As in `outcomes`, and the stages that did not begin or failed."""

    suite: str
    model_version: str
    errors: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    @property
    def incomplete(self) -> bool:
        return bool((self.failed | self.skipped - {*REPORTS}) - {*COMPARING})


def run(home: Home, request: Request, progress: Progress) -> Iterator[Finished]:
    """Runs the suites for each model version; a failing suite does not stop the others."""
    workspace = Workspace(home)
    publication = request.publication or Publication(workspace)
    try:
        yield from _Command(workspace, publication, request, progress).run()
    finally:
        publication.waiting = False
        publication.publish()


def _remains(left_out: set[str], stage: Stage) -> bool:
    return stage.name not in left_out


def _delivers(with_suite: bool, stage: Stage) -> bool:
    return stage.name in DELIVERING and (with_suite or stage.name not in COMPARING)


class _Command:
    def __init__(self, workspace: Workspace, publication: Publication, request: Request, progress: Progress) -> None:
        self._workspace, self._publication, self._progress = workspace, publication, progress
        self._request, self._partitions = request, request.partitions
        self._last = {partition.suite: partition for partition in request.partitions}

    def run(self) -> Iterator[Finished]:
        read, broken, uncompared = set[str](), set[str](), set[str]()
        versions = list(dict.fromkeys(partition.model_version for partition in self._partitions))
        self._publication.waiting = len(versions) > 1
        for version in versions:
            places = [p for p in self._partitions if p.model_version == version and p.suite not in broken]
            run = RunContext(str(uuid4()), self._request.epoch, canary=self._request.canary)
            found = {place: Finished(place.suite, version) for place in places}
            for delivers in (False, True):  # all are closed before they are published together
                for place, one in found.items():
                    left_out = {*(INGESTING if place.suite in read else ())}
                    left_out |= {*(COMPARING if self._last[place.suite] != place else ())}
                    self._walk(one, self._inputs(place, run), partial(_remains, left_out), delivers)
            for place, one in found.items():
                if (one.failed | one.skipped) & {*INGESTING}:
                    one.model_version = ""
                    broken.add(place.suite)
                if one.skipped & {*COMPARING} - {*REPORTS} and not one.failed & {*COMPARING}:
                    uncompared.add(place.suite)
                yield one
            read |= {place.suite for place in places}
        evaluated = {key.suite for key in self._workspace.record.partitions(STATISTICS)} if uncompared else set()
        yield from self._more(sorted((uncompared - broken) & evaluated), lambda stage: stage.name in COMPARING)
        if self._publication.waiting:
            self._publication.waiting = False
            yield from self._deliver()

    def _deliver(self) -> Iterator[Finished]:
        closed, compared = self._publication.closed, self._publication.compared
        for place in sorted((p for p in self._partitions if p in closed), key=lambda p: p.model_version):
            with_suite = self._last[place.suite] == place and place.suite in compared
            compared -= {place.suite} if with_suite else set()
            yield from self._more([place], partial(_delivers, with_suite))
        yield from self._more(sorted(compared), lambda stage: stage.name in DELIVERING and stage.name in COMPARING)

    def _more(self, places: Iterable[Partition | str], chosen: Callable[[Stage], bool]) -> Iterator[Finished]:
        for place in places:
            version = "" if isinstance(place, str) else place.model_version
            one = Finished(place if isinstance(place, str) else place.suite, version)
            for delivers in (False, True):
                self._walk(one, self._inputs(place, RunContext(str(uuid4()), self._request.epoch)), chosen, delivers)
            if one.errors:
                yield one

    def _inputs(self, place: Partition | str, run: RunContext) -> Inputs:
        suite, partition = (place, None) if isinstance(place, str) else (place.suite, place)
        scope, progress = self._request.scope, self._progress
        return Inputs(self._workspace, suite, partition, run=run, scope=scope, progress=progress)

    def _walk(self, told: Finished, inputs: Inputs, chosen: Callable[[Stage], bool], delivers: bool) -> None:
        """Runs chosen stages; those whose tables are missing are skipped."""
        source = self._workspace.suite(inputs.suite)
        chain = chain_of(source.track() if source.header else None)
        wanted = [s for s in chain if chosen(s) and (self._request.with_report or s.name not in REPORTS)]
        for stage in [stage for stage in wanted if bool(stage.deliver) == delivers]:
            if {*before(chain, stage)} & (told.failed | told.skipped):
                told.skipped.add(stage.name)
                continue
            try:
                if self._has_nothing(stage, inputs):
                    told.skipped.add(stage.name)
                else:
                    self._stage(told, stage, inputs, wanted)
            except EvalError as error:
                shown = error.example if inputs.partition and not stage.whole_suite else ""
                told.errors.append(f"{error} (e.g. {shown})" if shown else str(error))
                told.failed.add(stage.name)
            except Exception:
                sentence = f'Error occurred while executing op "{inputs.suite}__{stage.name}"::'
                sentence = f"dagster._core.errors.DagsterExecutionStepExecutionError: {sentence}"
                told.errors.append(f"{sentence}\n\n{traceback.format_exc()}")
                told.failed.add(stage.name)

    def _has_nothing(self, stage: Stage, inputs: Inputs) -> bool:
        if stage.whole_suite or inputs.partition is None:
            return False
        return bool(self._workspace.why_not(inputs.place.model_version, inputs.suite))

    def _stage(self, told: Finished, stage: Stage, inputs: Inputs, wanted: Chain) -> None:
        if stage.whole_suite:
            if stage.deliver and self._publication.waiting:
                self._publication.compared.add(inputs.suite)
                return
            runner.run_stage(stage, inputs.anew(partition=None, run=RunContext(), scope=Scope()))
            self._check(told, stage, [(check, check.verdict(inputs.anew(partition=None))) for check in stage.checks])
        elif stage.name == "published":
            self._publish(inputs)
        elif not (stage.deliver and self._publication.waiting):
            own, place, run_id = inputs.anew(), inputs.place, inputs.run.run_id
            with ending_failed(self._workspace, place, run_id):
                runner.run_stage(stage, own)
                verdicts = [(check, check.verdict(own)) for check in stage.checks]
            if not self._check(told, stage, verdicts):
                end_run(self._workspace, place, run_id, FAILED)
            last = [s.name for s in wanted if not (s.whole_suite or s.deliver)][-1:]
            if [stage.name] == last and not told.failed | told.skipped:
                self._publication.close(inputs.anew())

    def _check(self, told: Finished, stage: Stage, verdicts: Sequence[tuple[Check, Verdict]]) -> bool:
        """Notes failed checks; whether none of them blocks what depends on the stage."""
        for check, verdict in verdicts:
            severe = not (check.warning or verdict.warning) or check.name == SERVED_AS_BEFORE
            if not verdict.passed and severe and stage.name not in COMPARING:
                told.errors.append(f"check {check.name}: {verdict.text}")
        blocking = [c.name for c, v in verdicts if c.blocking and not (v.passed or c.warning or v.warning)]
        if blocking:
            sentence = f"{len(blocking)} blocking asset check{'s' * (len(blocking) > 1)} failed with ERROR severity:"
            sentence += f"\n{told.suite}/{stage.name}: {','.join(blocking)}"
            told.errors.append(f"dagster._core.errors.DagsterAssetCheckFailedError: {sentence}")
            told.failed.add(stage.name)
        return not blocking

    def _publish(self, inputs: Inputs) -> None:
        if not self._publication.holds(inputs.place):
            self._publication.close(inputs)
        if not self._publication.waiting:
            self._publication.publish()
        outcome = self._publication.outcome.get(inputs.place)
        if isinstance(outcome, StoreError):
            raise outcome
