"""The Dagster code location: everything in `eval_pipeline.defs`."""

import dagster as dg

import eval_pipeline.defs
from eval_pipeline.core.home import find_home
from eval_pipeline.core.private import make_private
from eval_pipeline.core.supervision import end_with_supervisor

end_with_supervisor()
make_private(find_home().root)
defs = dg.load_defs(eval_pipeline.defs)
