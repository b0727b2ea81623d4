"""What is meant to be fast, and how it is measured."""
