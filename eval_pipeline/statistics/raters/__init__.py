"""Agreement of raters, labels, and gold that models agree against."""
