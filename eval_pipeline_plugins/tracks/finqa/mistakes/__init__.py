"""What is wrong with an answer: numbers, slips, earlier turns that were carried on."""
