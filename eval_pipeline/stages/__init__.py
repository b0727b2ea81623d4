"""The stages of an evaluation: plain functions from record to record; Dagster only decides when they run."""
