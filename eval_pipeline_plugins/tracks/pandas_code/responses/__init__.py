"""Responses: how code is read from one, and checked before it runs."""
