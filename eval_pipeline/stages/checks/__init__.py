"""What has to hold of a suite and of an evaluation."""
