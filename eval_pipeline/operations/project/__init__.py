"""A new project outside a clone of this repository: sample suites, model versions and a workflow for CI."""
