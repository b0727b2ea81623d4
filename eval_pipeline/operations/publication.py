"""Publishes the evaluations of a command together, because each publishing copies the store."""

from collections.abc import Sequence

from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import LockedError, StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.stages.publishing import Closed, close_run, left_out, mark_failed, publish_together
from eval_pipeline.store.listing import verify_files
from eval_pipeline.store.publisher import Published
from eval_pipeline.store.record import RecordKey
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import ending_failed
from eval_pipeline.workspace.track_tables import further_tables
from eval_pipeline.workspace.unpublished import Unpublished, adopted
from eval_pipeline.workspace.workspace import Workspace


class Publication:
    """The evaluations of one command, which are published in one go.

    Attributes:
        waiting: whether stages must leave the publishing to the end of the command.
        compared: suites whose comparisons wait to be published.
        outcome: what came of the evaluations that have been published, or failed to be.
    """

    def __init__(self, workspace: Workspace, *, waiting: bool = False) -> None:
        self.waiting = waiting
        self.outcome: dict[Partition, Published | StoreError] = {}
        self.compared: set[str] = set()
        self._workspace = workspace
        self._closed: dict[Partition, Closed] = {}
        self._note = Unpublished(workspace.home)

    @property
    def closed(self) -> Sequence[Partition]:
        """The evaluations that are not published yet."""
        return list(self._closed)

    def close(self, inputs: Inputs) -> None:
        """Closes an evaluation's run, so that `publish` includes it; an error becomes its outcome."""
        try:
            with ending_failed(inputs.workspace, inputs.place, inputs.run.run_id):
                self._note.add(inputs.place)
                self._closed[inputs.place] = close_run(inputs)
        except StoreError as error:
            self.outcome[inputs.place] = error

    def holds(self, partition: Partition) -> bool:
        """Whether an evaluation waits to be published, or has been."""
        return partition in self._closed or partition in self.outcome

    def publish(self) -> None:
        """Publishes the closed evaluations, and those that processes left which died before they could.

        If one evaluation is damaged, each is published by itself, so that it does not stop the others. Where another
        process holds the store's lock all have failed, instead of each waiting as long again.
        """
        runs = list(self._closed.values())
        if not runs:
            return
        shut = gate(self._workspace)
        try:
            with adopted(self._workspace.home) as left:
                whole = [partition for partition in left if self._is_whole(partition)]
                published = publish_together(runs, shut, whole)
            self._note_outcome(runs, published)
        except LockedError as error:
            mark_failed(runs)
            self.outcome |= {closed.inputs.place: error for closed in runs}
        except StoreError:
            self._publish_each(runs)
        self._closed.clear()
        self._note.clear()

    def _is_whole(self, partition: Partition) -> bool:
        """Whether an evaluation that a dead process left can be published; if not, `publish` and `doctor` say why."""
        key = RecordKey.of(partition)
        try:
            verify_files(self._workspace.record, further_tables(), key)
            return gate(self._workspace)(key) is None
        except StoreError:
            return False

    def _publish_each(self, runs: Sequence[Closed]) -> None:
        shut = gate(self._workspace)
        for closed in runs:
            try:
                self._note_outcome([closed], publish_together([closed], shut))
            except StoreError as error:
                mark_failed([closed])
                self.outcome[closed.inputs.place] = error

    def _note_outcome(self, runs: Sequence[Closed], published: Published) -> None:
        why = {key: sentence for (key, _), sentence in zip(published.left_out, left_out(published), strict=True)}
        for closed in runs:
            refused = why.get(closed.keys[0])
            self.outcome[closed.inputs.place] = StoreError(refused) if refused else published
