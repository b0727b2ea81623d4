"""Responses: how a query is read from one, run, protected, and put before a judge."""
