"""State as objects of a bucket: the few operations that are needed, over obstore, with errors of one sentence."""
