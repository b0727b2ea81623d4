"""Work on suites: candidates, mutation scores, turns that tell models apart, packages and programs of theirs."""
