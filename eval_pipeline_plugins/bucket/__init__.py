"""A home in a bucket: the place that `EVAL_HOME=s3://bucket/prefix` names (docs/scale.md)."""
