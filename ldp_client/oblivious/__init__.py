"""Oblivious HTTP (RFC 9458): requests that a relay forwards unread, to a gateway that sees not whose."""
