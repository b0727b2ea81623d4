"""Commands for suites: init, import, candidates, harden, reviews, rejudge, suite."""
