"""Oblivious HTTP (RFC 9458): a relay forwards requests unread to a gateway that cannot see who sent them."""
