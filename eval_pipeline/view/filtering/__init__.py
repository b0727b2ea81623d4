"""Which turns of an evaluation are shown, in which order: from the address to SQL."""
