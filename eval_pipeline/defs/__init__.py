"""Dagster definitions: when the stages run, on what, and what the UI shows. The only floor that imports dagster."""
