"""Oblivious HTTP (RFC 9458): requests that a relay forwards and cannot read, to a gateway that cannot see whose."""
