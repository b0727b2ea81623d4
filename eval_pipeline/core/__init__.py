"""The data model, errors, ids and numbers: the floor everything else stands on."""
