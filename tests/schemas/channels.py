"""Channels of study documents, with keys of unknown factors."""

from base64 import b64encode

from ldp_client.documents.channel import SPKI_HEAD, SPKI_TAIL


def spki(seed=1, first=0x80, last=1, head=SPKI_HEAD, tail=SPKI_TAIL, length=256):
    """A key of that form with unknown factors."""
    modulus = bytes([first]) + bytes([seed]) * (length - 2) + bytes([last])
    return b64encode(head + modulus + tail).decode()


def tokens(*public, issuer="https://issuer.example"):
    keys = [{"key": spki(seed + 1), "public": values} for seed, values in enumerate(public)]
    return {"issuer": issuer, "keys": keys or [{"key": spki()}]}


def channel(**parts):
    return {"batches": {"hours": 24}, **(parts or {"tickets": tokens()})}
