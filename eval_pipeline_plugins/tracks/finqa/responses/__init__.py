"""Responses: how a plan or a recorded answer is read from one, and checked."""
