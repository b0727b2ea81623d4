"""What data sets, dimensions and terms there are: structure messages, lists, the tables that keep them."""
