"""Accuracy along an order, such as complexity: levels, monotone and logistic regression, the ceiling."""
