"""Summaries of very many reports: columns of Parquet instead of objects, and frames of Dask or Spark."""
