"""The workspace: one home with its record, suites, model versions, runs and progress, as used by the stages."""
