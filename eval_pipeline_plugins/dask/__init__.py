"""Dask as a cluster: `EVAL_CLUSTER` with tcp:// or tls:// (docs/scale.md)."""
