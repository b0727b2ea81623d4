"""Exports an evaluation as a folder of pages that opens from disk or any web host, without a server."""
