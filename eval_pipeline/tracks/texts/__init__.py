"""Texts that go to a model and come from it: the parts of a prompt, reasoning apart from the answer."""
