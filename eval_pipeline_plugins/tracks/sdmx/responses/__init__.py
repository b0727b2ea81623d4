"""Responses: how selections are read from one, which are accepted, and how they are scored."""
