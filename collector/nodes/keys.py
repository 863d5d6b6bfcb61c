"""A node's key pairs: X25519, to which devices seal shares, and Ed25519, which signs its statements."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.documents.errors import InputError
from schemas.disk import read_bytes, write_new

FORMAT = "ldpkit.node-key/1"


@dataclass(frozen=True)
class NodeKeys:
    """The private keys of one node."""

    sealing: X25519PrivateKey
    signing: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> NodeKeys:
        """Return two new key pairs."""
        return cls(X25519PrivateKey.generate(), Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NodeKeys:
        """Read the keys from a file of `save`. Raises InputError, which never shows the file's contents."""
        try:
            stored = json.loads(read_bytes(path))
            if stored["format"] != FORMAT:
                raise ValueError
            sealing = X25519PrivateKey.from_private_bytes(bytes.fromhex(stored["x25519"]))
            return cls(sealing, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(stored["ed25519"])))
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path} is not a node's key file, which `ldpkit init --as node` makes",
                code="node.not_key_file",
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file that only its owner may read. Raises InputError if the file exists."""
        document = {
            "format": FORMAT,
            "x25519": self.sealing.private_bytes_raw().hex(),
            "ed25519": self.signing.private_bytes_raw().hex(),
        }
        write_new(path, json.dumps(document), 0o600)

    @property
    def fragment(self) -> str:
        """Return the public keys as they follow # in a study's node address."""
        sealing = self.sealing.public_key().public_bytes_raw()
        return (sealing + self.signing.public_key().public_bytes_raw()).hex()
