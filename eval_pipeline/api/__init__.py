"""The functions of `import eval_pipeline as ep` other than `ep.load`: runs, comparisons and scores."""
