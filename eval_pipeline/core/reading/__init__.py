"""Reading files that others wrote, so that nothing of them is lost without a word and none can do harm."""
