"""What lies in a home beside the record: folders, locks, imports, the store of a bucket."""
