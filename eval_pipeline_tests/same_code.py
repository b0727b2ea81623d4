"""Records that code computes the same as code before it, so that renaming scores nothing again.

    python -m eval_pipeline_tests.same_code BEFORE

BEFORE is a checkout whose code computes the same, e.g. of the commit before; whoever runs this vouches
for that. Each root whose digest differs gets a line in `eval_pipeline/fingerprints/same.json`: digest now → digest
before. A line holds as long as nothing else changes in what the root reaches, so that later changes are seen as ever.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SAME = Path("eval_pipeline", "fingerprints", "same.json")
_OF_RECORDS = frozenset({"model_comparisons"})  # lists metrics of what is on record
_TRACKS = ("agent", "finqa", "sql", "pandas", "sdmx", "text")


def _roots() -> Iterator[tuple[str, Any]]:
    """Yields each root of stages, metrics, providers and reports under a name that does not depend on where it is."""
    from eval_pipeline.analysis.comparisons import compared
    from eval_pipeline.chain.evaluation import chain_of
    from eval_pipeline.providers.registry import PROVIDERS
    from eval_pipeline.stages.code import doubting_code, ends_code
    from eval_pipeline.tracks.code import damage_code, methods
    from eval_pipeline.tracks.registry import load_track

    yield from PROVIDERS.items()
    yield "reports", "eval_pipeline.reports.registry:REPORTS"
    yield "ends", "eval_pipeline.stages.checks.kept:check_ends"
    yield "judge", "eval_pipeline.judge.classifier:classify"
    yield "compared", "eval_pipeline.analysis.comparisons.making:compare_models"
    yield "latest", compared.latest_evaluations
    for name in _TRACKS:
        plain = load_track(name)
        judged = plain.for_suite({"metrics": {"judge": {"model": "m", "rubric": "r"}}})
        for kind, track in {name: plain, **({f"{name} judged": judged} if judged is not plain else {})}.items():
            gold = SimpleNamespace(cases=("c",), alternatives=("c",))
            inputs: Any = SimpleNamespace(track=track, gold=gold, suite=name)
            for stage in chain_of(track):
                found = () if stage.name in _OF_RECORDS else stage.code(inputs)
                yield from ((f"{kind} {stage.name} {number}", root) for number, root in enumerate(found))
            own = {"ends": ends_code(track), "doubt": doubting_code(inputs), "damage": damage_code(track)}
            yield from ((f"{kind} {of} {number}", root) for of, its in own.items() for number, root in enumerate(its))
            yield from ((f"{kind} metric {one.name}", one.function) for one in track.metrics)
            named = [attribute for attribute in dir(track) if not attribute.startswith("_")]
            yield from ((f"{kind}.{attribute}", root) for attribute in named for root in methods(track, attribute))


def digests() -> dict[str, str]:
    """Returns the digest of each root of this code, by its name, without regard to what is recorded as the same."""
    from eval_pipeline.fingerprints.fingerprints import Fingerprints
    from eval_pipeline.fingerprints.places import places
    from eval_pipeline.workspace.workspace import CARRIERS

    fingerprints, found = Fingerprints(stops=CARRIERS), {}
    for name, root in _roots():
        reacher, nodes, _ = fingerprints._started([place for place in places(root) if not place.startswith("=")])
        reacher.digest(nodes)
        found |= {f"{name} {number}": reacher._digests[node] for number, node in enumerate(nodes)}
    return found


def _digests_of(checkout: Path) -> dict[str, str]:
    """Returns the digests of a checkout's roots, each as what it is recorded to be the same as."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, __file__, "--list"]
    printed = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(printed))


def _same(checkout: Path) -> dict[str, str]:
    file = checkout / SAME
    return json.loads(file.read_text()) if file.exists() else {}


def pairs(then: dict[str, str], today: dict[str, str], known: dict[str, str]) -> dict[str, str]:
    """Returns digest today → digest before of every root whose digest differs; `known` are those recorded before.

    Raises ValueError if a root is gone, or two that differed are alike now.
    """
    if gone := sorted(then.keys() - today.keys()):
        raise ValueError(f"roots that are gone: {', '.join(gone)}")
    found: dict[str, str] = {}
    for name in then.keys() & today.keys():
        was = known.get(then[name], then[name])
        if found.setdefault(today[name], was) != was:
            raise ValueError(f"{name} is alike with a root from which it differed")
    return dict(sorted((new, old) for new, old in found.items() if new != old))


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print(json.dumps(digests()))
    else:
        before = Path(sys.argv[1]).resolve()
        found = pairs(_digests_of(before), _digests_of(Path.cwd()), _same(before))
        SAME.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} roots compute the same under another digest")
