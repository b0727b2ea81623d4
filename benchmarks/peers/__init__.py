"""CPU a sample of other evaluation harnesses beside ours, measured in one run."""
