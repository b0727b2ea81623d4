"""Which turns of an evaluation are shown and in what order: translates the address to SQL."""
