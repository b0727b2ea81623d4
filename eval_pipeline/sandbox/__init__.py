"""Runs code that models wrote; no other part of the product may do so.

Example: `async with PythonSandbox() as box: await box.run(code, tables)`.

`BlockingSandbox` does the same for callers without an event loop. `results.as_pandas(ran.result)` returns the pandas
value.
"""
