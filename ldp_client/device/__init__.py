"""Device, and what stands behind it: policy, ledger, outbox, sending."""
