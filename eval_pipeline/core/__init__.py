"""The lowest layer: data model, errors, ids, numbers and other basics that all other packages use."""
