"""The Dagster instance, and runs started from the command line."""
