"""Device and its parts: policy, ledger, outbox and sending."""
