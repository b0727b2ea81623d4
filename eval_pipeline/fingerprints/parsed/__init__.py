"""Modules parsed without importing them: definitions, names that they bind and read, and their digests."""
