"""The Dagster code location: everything in `eval_pipeline.defs`."""

import dagster as dg

import eval_pipeline.defs

defs = dg.load_defs(eval_pipeline.defs)
