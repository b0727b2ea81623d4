"""What Dagster does not call public and this package needs all the same: no other module imports it from there.

A new release of Dagster is looked at here. Three modules, so that nobody loads servers or storages for a tag.
"""
