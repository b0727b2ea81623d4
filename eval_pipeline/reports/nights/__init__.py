"""What a night brought: one message and one page, with figures and no texts of models or suites."""
