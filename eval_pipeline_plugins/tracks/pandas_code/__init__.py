"""The track `pandas`: code generation over DataFrames."""
