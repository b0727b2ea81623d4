"""The store as a catalog: immutable Parquet parts named by content, a manifest a suite, and a DuckDB file of views.

Publishing writes the parts of what has changed, then the manifests, then the small catalog, so that its cost follows
the change and not the store. Readers open the catalog, whose views name their parts, so that they see one state.
"""
