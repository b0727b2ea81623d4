"""The seed of what campaigns draw: the same each time, so that a change is refused for its own faults only.

`make soak` draws another one each time and prints it; `EVAL_SEED` repeats that.
"""

import os

SEED = int(os.environ.get("EVAL_SEED", "0"))
