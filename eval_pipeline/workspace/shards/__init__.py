"""Shards of a stage: what workers check, and the parts that they leave."""
