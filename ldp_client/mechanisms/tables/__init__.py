"""The mechanisms of data holders: noisy second moments of a table of records. Reading a table needs NumPy."""
