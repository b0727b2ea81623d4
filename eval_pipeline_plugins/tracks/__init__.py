"""The tracks that come along, found by their entry points like anybody's."""
