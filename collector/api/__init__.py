"""Routes under /v1 and /metrics."""
