"""What comes back from the sandbox: outcomes, classes of errors, results and tables."""
