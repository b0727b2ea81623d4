"""The catalogue of data sets, dimensions and terms: structure messages, term lists, and their tables."""
