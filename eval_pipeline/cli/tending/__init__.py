"""Commands that tend a home: acknowledge, packages, prune, remove."""
