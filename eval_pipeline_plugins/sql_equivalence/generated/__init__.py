"""Databases that are generated to tell two queries apart, and the engines that hold them."""
