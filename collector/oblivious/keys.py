"""A gateway's keys in a file: the newest, which studies state, and older ones that devices may still hold."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import read_bytes, replacing, write_new
from ldp_client.oblivious.encapsulation import configuration
from schemas import Study

FORMAT = "ldpkit.ohttp-keys/1"
OWNER_ONLY = 0o600
# Each one that is valid opens what was ever sent to it: retire the keys of studies that are over.
MOST_KEYS = 16
IDS = 256


@dataclass(frozen=True)
class GatewayKey:
    """One key pair. number: by which an encapsulated request names it, 0 to 255."""

    number: int
    private: X25519PrivateKey

    @classmethod
    def generate(cls, number: int | None = None) -> GatewayKey:
        """A new key pair. number: None draws one: a device whose key is lost would not be told so by another
        key of its number.
        """
        drawn = secrets.randbelow(IDS) if number is None else number
        return cls(drawn, X25519PrivateKey.generate())

    @property
    def configuration(self) -> bytes:
        """Its public part, as a study states it (RFC 9458, section 3.1)."""
        return configuration(self.number, self.private.public_key().public_bytes_raw())


@dataclass(frozen=True)
class GatewayKeys:
    """The keys that are valid, the newest first."""

    keys: tuple[GatewayKey, ...]

    @classmethod
    def generate(cls) -> GatewayKeys:
        """One new key."""
        return cls((GatewayKey.generate(),))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GatewayKeys:
        """The keys in a file that `save` wrote. Raises InputError, which never shows the file's contents."""
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
                f"{path} is no file of a gateway's keys: `ldpkit oblivious rotate` makes a new one",
                code="oblivious.wrong_key_file",
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file that only its owner may read. Raises InputError where there is one already."""
        write_new(path, self._text(), OWNER_ONLY)

    def replace(self, path: str) -> None:
        """Write them instead of what the file holds; it keeps its mode."""
        with replacing(path, private=True) as file:
            file.write(self._text())

    def find(self, number: int) -> X25519PrivateKey | None:
        """The private key of that number, None where it is not valid."""
        return next((key.private for key in self.keys if key.number == number), None)

    def opens(self, study: Study) -> bool:
        """Whether what devices send for a study can be opened; always where it states no relay."""
        stated = _stated_in(study)
        return stated is None or stated in [key.configuration for key in self.keys]

    def lack_for(self, study: Study) -> str:
        """What an operator is told of an open study that these cannot open; "" of others."""
        stated = _stated_in(study)
        if stated is None or self.opens(study):
            return ""
        return (
            f"study {study.id} states key {stated[0]} of a gateway, which is not in "
            "ohttp_keys: it is served as closed, and reports to it stay on their devices. Put the file with "
            "that key back; where it is lost or leaked, publish a version that states what `ldpkit oblivious "
            "show` prints, or close the study"
        )

    def rotated(self) -> GatewayKeys:
        """With a new key before these. Raises InputError where there are as many as a gateway holds."""
        if len(self.keys) == MOST_KEYS:
            raise InputError(
                f"{MOST_KEYS} keys are valid, the most that a gateway holds: close the studies that state an "
                "older one, delete their reports or let them expire, and then run ldpkit oblivious retire",
                code="oblivious.too_many_keys",
            )
        taken = {key.number for key in self.keys}
        last = self.keys[0].number
        number = next(one for step in range(1, IDS) if (one := (last + step) % IDS) not in taken)
        return GatewayKeys((GatewayKey.generate(number), *self.keys))

    def without(self, number: int) -> GatewayKeys:
        """Without one that studies state no more. Raises InputError for none of these, and for the newest."""
        known = ", ".join(str(key.number) for key in self.keys[1:]) or "none"
        if number not in {key.number for key in self.keys[1:]}:
            raise InputError(
                f"no older key has the number {number}: those that can be retired are {known}",
                code="oblivious.unknown_key",
            )
        return GatewayKeys(tuple(key for key in self.keys if key.number != number))

    def published(self) -> bytes:
        """All configurations in the form application/ohttp-keys (RFC 9458, section 3.2), the newest first."""
        listed = [key.configuration for key in self.keys]
        return b"".join(len(one).to_bytes(2, "big") + one for one in listed)

    def _text(self) -> str:
        keys = [{"number": key.number, "x25519": key.private.private_bytes_raw().hex()} for key in self.keys]
        return json.dumps({"format": FORMAT, "keys": keys})


def _stated_in(study: Study) -> bytes | None:
    """The configuration that a study's devices encapsulate to, None of a study without a relay."""
    oblivious = study.channel.oblivious if study.channel else None
    return oblivious.keys if oblivious else None


def _read_key(stored: dict[str, object]) -> GatewayKey:
    number = stored["number"]
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < IDS:
        raise ValueError
    return GatewayKey(number, X25519PrivateKey.from_private_bytes(bytes.fromhex(str(stored["x25519"]))))
