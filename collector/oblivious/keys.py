"""A gateway's keys in a file: the newest, which new apps ship, and older keys that apps may still have."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import read_bytes, replacing, write_new
from ldp_client.oblivious.encapsulation import configuration

FORMAT = "ldpkit.ohttp-keys/1"
OWNER_ONLY = 0o600
# A valid key opens everything that was ever sent to it: retire a key once no app ships it.
MOST_KEYS = 16
IDS = 256


@dataclass(frozen=True)
class GatewayKey:
    """One key pair. number: the key's number in encapsulated requests, 0 to 255."""

    number: int
    private: X25519PrivateKey

    @classmethod
    def generate(cls, number: int | None = None) -> GatewayKey:
        """Make a key pair.

        number: None draws one. If the key file is lost and its new key had the same number, apps would not
        learn of the loss.
        """
        drawn = secrets.randbelow(IDS) if number is None else number
        return cls(drawn, X25519PrivateKey.generate())

    @property
    def configuration(self) -> bytes:
        """The public part, as an app ships it (RFC 9458, section 3.1)."""
        return configuration(self.number, self.private.public_key().public_bytes_raw())


@dataclass(frozen=True)
class GatewayKeys:
    """The valid keys, the newest first."""

    keys: tuple[GatewayKey, ...]

    @classmethod
    def generate(cls) -> GatewayKeys:
        """Make one new key."""
        return cls((GatewayKey.generate(),))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GatewayKeys:
        """Read a file that `save` wrote. Raises InputError, which never shows the file's contents."""
        try:
            stored = json.loads(read_bytes(path))
            if stored["format"] != FORMAT:
                raise ValueError
            keys = tuple(_read_key(one) for one in stored["keys"])
            if not 1 <= len({key.number for key in keys}) == len(keys) <= MOST_KEYS:
                raise ValueError
            return cls(keys)
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path} is no file of a gateway's keys: `ldpkit ohttp rotate` makes a new one",
                code="oblivious.wrong_key_file",
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file that only its owner may read. Raises InputError if the file exists."""
        write_new(path, self._text(), OWNER_ONLY)

    def replace(self, path: str) -> None:
        """Overwrite an existing file with these keys; the file keeps its mode."""
        with replacing(path, private=True) as file:
            file.write(self._text())

    def find(self, number: int) -> X25519PrivateKey | None:
        """Return the private key with this number, or None if it is not valid."""
        return next((key.private for key in self.keys if key.number == number), None)

    def rotated(self) -> GatewayKeys:
        """Return the keys with a new key in front. Raises InputError if the gateway is full."""
        if len(self.keys) == MOST_KEYS:
            raise InputError(
                f"{MOST_KEYS} keys are valid, the most that a gateway holds: run ldpkit ohttp retire for a "
                "key that no app ships any more",
                code="oblivious.too_many_keys",
            )
        taken = {key.number for key in self.keys}
        last = self.keys[0].number
        number = next(one for step in range(1, IDS) if (one := (last + step) % IDS) not in taken)
        return GatewayKeys((GatewayKey.generate(number), *self.keys))

    def without(self, number: int) -> GatewayKeys:
        """Return the keys without an older key. Raises InputError for the newest or an unknown one."""
        known = ", ".join(str(key.number) for key in self.keys[1:]) or "none"
        if number not in {key.number for key in self.keys[1:]}:
            raise InputError(
                f"no older key has the number {number}: keys that can be retired: {known}",
                code="oblivious.unknown_key",
            )
        return GatewayKeys(tuple(key for key in self.keys if key.number != number))

    def published(self) -> bytes:
        """Return all configurations as application/ohttp-keys (RFC 9458, section 3.2), the newest first."""
        listed = [key.configuration for key in self.keys]
        return b"".join(len(one).to_bytes(2, "big") + one for one in listed)

    def _text(self) -> str:
        keys = [{"number": key.number, "x25519": key.private.private_bytes_raw().hex()} for key in self.keys]
        return json.dumps({"format": FORMAT, "keys": keys})


def _read_key(stored: dict[str, object]) -> GatewayKey:
    number = stored["number"]
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < IDS:
        raise ValueError
    return GatewayKey(number, X25519PrivateKey.from_private_bytes(bytes.fromhex(str(stored["x25519"]))))
