"""Record and catalog of a home in a bucket, read through copies on this host's disk (docs/scale.md)."""
