"""Decides whether the record already holds what a stage would produce, by comparing the inputs it was made from."""

from collections.abc import Mapping

from eval_pipeline.chain.stage import Chain, Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.fingerprints.fingerprints import Fingerprint
from eval_pipeline.workspace.evaluations import ADDED
from eval_pipeline.workspace.inputs import Inputs

CODE, LIBRARIES = "code", "libraries"


def fingerprint_of(stage: Stage, inputs: Inputs) -> Fingerprint:
    """Returns the fingerprint of the code and libraries that decide the stage's result for these inputs."""
    return inputs.workspace.fingerprints.of(*stage.code(inputs))


def made_from(stage: Stage, inputs: Inputs) -> dict[str, str]:
    """Returns everything that decides a stage's result, by name: hashes of tables, settings, code and libraries.

    Tables of whole suites and model versions count with their current contents. A stage of a whole suite lists what it
    takes from single evaluations in its settings.

    Raises:
        UsageError: a table that it reads is not in the record.
    """
    read = [table for table in stage.reads if table.key != "partition" or not stage.whole_suite]
    code = fingerprint_of(stage, inputs)
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(code.libraries.items()))
    return {**inputs.hashes(read), **stage.settings(inputs), CODE: code.code, LIBRARIES: libraries}


def is_current(stage: Stage, inputs: Inputs, made: Mapping[str, str] | None = None) -> bool:
    """Whether the record holds what the stage would produce now; pass `made` if `made_from` is known already."""
    ignored = ignored_in(stage, inputs)
    wanted = made_from(stage, inputs) if made is None else made
    for table in stage.writes:
        header = inputs.header(table)
        if header is None or header.schema_hash != table.schema_hash():
            return False
        unsaid = ignored | (ADDED - header.made_from.keys())
        if _without(header.made_from, unsaid) != _without(wanted, unsaid):
            return False
    return not stage.unfinished(inputs)


def ignored_in(stage: Stage, inputs: Inputs) -> frozenset[str]:
    """Returns the names in `made_from` whose change alone does not make the stage run again.

    A new version of a library could change every figure of every night. It is reported, and applied only on request.
    The same holds for changes that would require asking a model again.
    """
    ignored = frozenset[str]() if inputs.run.exact else frozenset({LIBRARIES})
    return ignored if inputs.run.exact and inputs.run.asks_judge else ignored | stage.asks_again


def is_up_to_date(chain: Chain, inputs: Inputs) -> bool:
    """Whether the record holds everything that these stages would produce now."""
    try:
        return all(is_current(stage, prepared(stage, inputs)) for stage in chain if stage.writes)
    except EvalError:
        # Something is missing or wrong; the run itself reports it in the right place.
        return False


def prepared(stage: Stage, inputs: Inputs) -> Inputs:
    """Returns the inputs as the stage will receive them."""
    own = inputs.anew(partition=None) if stage.whole_suite else inputs.anew()
    return stage.asks.prepare(own) if stage.asks else own


def changes(stage: Stage, inputs: Inputs) -> dict[str, tuple[str, str]]:
    """Returns the changes in `made_from` that are only reported, since the record was made: name → (before, now)."""
    header = inputs.header(stage.writes[0]) if stage.writes else None
    if header is None:
        return {}
    now, told = made_from(stage, inputs), frozenset({LIBRARIES}) | stage.asks_again
    return {
        name: (before, now[name])
        for name in sorted(told)
        if name in now and (before := header.made_from.get(name)) is not None and before != now[name]
    }


def _without(made: Mapping[str, str], ignored: frozenset[str]) -> dict[str, str]:
    return {name: text for name, text in made.items() if name not in ignored}
