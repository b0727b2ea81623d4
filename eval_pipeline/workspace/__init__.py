"""One home as the stages see it: record, suites, model versions, runs, progress."""
