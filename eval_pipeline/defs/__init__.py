"""Dagster definitions: when stages run, on what, and what the UI shows. The only package that imports dagster."""
