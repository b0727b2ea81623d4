"""Code shared by all providers that ask over HTTP."""
