"""The gateway of oblivious HTTP (RFC 9458): requests that came through a relay."""
