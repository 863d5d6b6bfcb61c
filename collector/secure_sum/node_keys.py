"""A node's key pairs: X25519, to which devices seal shares, and Ed25519, which signs what it says."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from schemas.errors import InputError

FORMAT = "ldpkit.node-key/1"


@dataclass(frozen=True)
class NodeKeys:
    """The private keys of one node."""

    sealing: X25519PrivateKey
    signing: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> NodeKeys:
        """Two new key pairs."""
        return cls(X25519PrivateKey.generate(), Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NodeKeys:
        """The keys in a file that `save` wrote. Raises InputError, which never shows the file's contents."""
        try:
            stored = json.loads(Path(path).read_text())
            if stored["format"] != FORMAT:
                raise ValueError
            sealing = X25519PrivateKey.from_private_bytes(bytes.fromhex(stored["x25519"]))
            return cls(sealing, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(stored["ed25519"])))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path} is not a node's key file: make one with ldpkit secure-sum keygen"
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file that only its owner may read. Raises InputError where there is one already."""
        document = {
            "format": FORMAT,
            "x25519": self.sealing.private_bytes_raw().hex(),
            "ed25519": self.signing.private_bytes_raw().hex(),
        }
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None
        with os.fdopen(descriptor, "w") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())

    @property
    def fragment(self) -> str:
        """The public keys as they stand behind # in a study's node address."""
        sealing = self.sealing.public_key().public_bytes_raw()
        return (sealing + self.signing.public_key().public_bytes_raw()).hex()
