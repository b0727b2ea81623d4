"""Track `pandas`: code generation over DataFrames."""
