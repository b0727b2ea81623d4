"""The results of a night as one message and one page, with figures but no texts of models or suites."""
