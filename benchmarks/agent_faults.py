"""How often an agent's first wrong step is found, on planted faults: `python -m benchmarks.agent_faults [--count 400]`.

The corpus is in `eval_pipeline_tests/tracks/agent/planted`; each attempt really runs in its world. `--show` prints the
attempts whose step or mode is not the planted one. `--held-back` takes those that nobody reads to improve the finder,
by the files that were written together.
"""

import argparse
import os
import tempfile

from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_tests.tracks.agent.planted.measuring import rates, sample
from eval_pipeline_tests.tracks.agent.planted.plans import BLIND, FRESH, MORE, READ, UNSEEN
from eval_pipeline_tests.tracks.agent.planted.playing import played, shown

_HELD_BACK = ("held_back/later_*", "held_back/latest_*", FRESH, BLIND, UNSEEN, MORE)


def main() -> None:
    """Prints the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=None, help="attempts, each kind in turn; all without it")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--held-back", dest="parts", action="store_const", const=_HELD_BACK, default=(READ,))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["EVAL_HOME"] = home
        parts = {names: played(sample(chosen.count, chosen.seed, names)) for names in chosen.parts}
        close_worlds()
    for names, found in parts.items():
        if chosen.show:
            print("\n\n".join(shown(one) for one in found if one.found != (one.mode, one.step)))
        print(f"\n{names}\n\n| kind | attempts | step exact | mode exact |\n|---|---|---|---|")
        print("\n".join(one.row() for one in rates(found)))


if __name__ == "__main__":
    main()
