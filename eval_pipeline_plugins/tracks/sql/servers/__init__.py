"""Loads the databases of suites that run on a server."""
