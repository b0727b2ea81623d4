"""The track `agent`."""
