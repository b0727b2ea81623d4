"""One account for all that a command or a night spends, kept by reservation across processes and hosts."""
