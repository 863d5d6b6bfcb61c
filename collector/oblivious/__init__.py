"""The gateway of oblivious HTTP (RFC 9458) for requests that came through a relay."""
