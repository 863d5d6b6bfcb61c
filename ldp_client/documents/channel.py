"""How reports travel: in batches and with blind tokens, or as secret shares to nodes that see only a sum.

The study contains the keys of the tokens. Its digest and signatures ensure that all devices use the same
keys, which the protocol does not do itself (RFC 9578, section 10).
"""

from typing import Any

from ldp_client.documents.fields import Base64, Constant, Error, Integer, Matching, OneOf
from ldp_client.documents.public import PUBLIC_VALUES
from ldp_client.documents.shapes import ListOf, Record, Tagged

# A week. With longer windows, reports would miss the last day of most studies.
MOST_HOURS = 168
MOST_KEYS = 64
LONGEST_ADDRESS = 500
MODULUS_BYTES = 256
EXPONENT = 65537
# SubjectPublicKeyInfo (RFC 9578, section 6.5) with id-RSASSA-PSS, SHA-384, MGF1 of SHA-384 and a salt of 48
# bytes, for a modulus of 2048 bits; the exponent follows the modulus. No ASN.1 is parsed, because a study
# cannot state any other form.
SPKI_HEAD = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108"
    "300b0609608648016503040202a2030201300382010f003082010a0282010100"
)
SPKI_TAIL = bytes.fromhex("0203010001")
SPKI_BYTES = len(SPKI_HEAD) + MODULUS_BYTES + len(SPKI_TAIL)


# A base URL in the only spelling that is compared: lower-case host, no user or query. An empty label would
# spell one host in two ways: one operator would look like two.
WEB_ADDRESS = Matching(
    r'https?://([a-z0-9-]+[.])*[a-z0-9-]+(:[0-9]{1,5})?(/[!"$->@-~]*)?',
    "must be https://host in small letters, perhaps with a port and a path",
    LONGEST_ADDRESS,
)


class TokenSpki(Base64):
    """A token key (RFC 9578, section 6.5) in base64: RSASSA-PSS with SHA-384, 2048 bits, exponent 65537."""

    def read(self, value: Any, path: str, error: Error) -> bytes:
        der = Base64.read(self, value, path, error)
        modulus = der[len(SPKI_HEAD) : len(SPKI_HEAD) + MODULUS_BYTES]
        whole = len(der) == SPKI_BYTES and der == SPKI_HEAD + modulus + SPKI_TAIL
        if not whole or not modulus[0] & 128 or not modulus[-1] & 1:
            raise error(path, "must be a token key of 2048 bits in base64, as `ldpkit tickets key` prints it")
        return der


_KEY = Record({"key": TokenSpki()}, {"public": PUBLIC_VALUES})
CHANNEL = Record(
    {"batches": Record({"hours": Integer(1, MOST_HOURS)})},
    {
        "tickets": Record(
            {
                "issuer": WEB_ADDRESS,
                "keys": ListOf(_KEY, 1, MOST_KEYS, unique_by="key"),
            }
        ),
    },
)


class TokenKey:
    """A key that signs tokens.

    Args:
        parsed: its part of a study document, as CHANNEL reads it.

    Attributes:
        spki: the bytes of its SubjectPublicKeyInfo.
        modulus: its modulus, big-endian; the exponent is 65537.
        public: the values of public fields that a token of this key proves.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.spki: bytes = parsed["key"]
        self.modulus: bytes = self.spki[len(SPKI_HEAD) : len(SPKI_HEAD) + MODULUS_BYTES]
        self.public: dict[str, str] = dict(parsed["public"] or {})


class Tickets:
    """The issuer of blind tickets, and the keys that sign the tokens bought with them.

    Args:
        parsed: its part of a study document, as CHANNEL reads it.

    Attributes:
        issuer: its base URL, without a slash at the end.
        name: the issuer's name in challenges: its host, and its port if the URL has one.
        keys: in the document's order.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.issuer: str = parsed["issuer"].rstrip("/")
        self.name: str = self.issuer.partition("://")[2].partition("/")[0]
        self.keys: tuple[TokenKey, ...] = tuple(TokenKey(one) for one in parsed["keys"])


class Channel:
    """How a study's reports leave.

    Args:
        parsed: its part of a study document, as CHANNEL reads it.

    Attributes:
        hours: the length of each window; a report that becomes ready in a window leaves in the next window.
        tickets: the issuer of blind tickets and its keys, or None.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.hours: int = parsed["batches"]["hours"]
        self.tickets: Tickets | None = Tickets(parsed["tickets"]) if parsed["tickets"] else None


KEY_BYTES = 32
EXPANSIONS = ("chacha20", "shake_256")
# Sums are of 64-bit words, modulo 2**64.
WORD_BYTES = 8
MODULUS = 1 << 64
# With at most this many devices, even the largest statistic cannot wrap.
MOST_DEVICES = 1 << 24
# The fewest devices that neither cheat nor drop out: one client, and two others whose noise protects it.
FEWEST_NOISY = 3


# A base URL, then # and keys in hexadecimal: X25519 (sealing), Ed25519 (signing). It has no spaces: a device
# keeps the addresses of all nodes as one text, with spaces between them.
NODE_ADDRESS = Matching(
    f'https?://[!-"$-~]+#[0-9a-f]{{{4 * KEY_BYTES}}}',
    "must be https://host#KEYS, as `ldpkit init --as node` prints it",
    LONGEST_ADDRESS,
)
PROTOCOL = Tagged(
    "name",
    {
        "secure_sum": Record(
            {
                "name": Constant("secure_sum"),
                "nodes": ListOf(NODE_ADDRESS, 2, 32),
                "devices": Integer(3, MOST_DEVICES),
                "max_faulty": Integer(0, MOST_DEVICES),
            },
            {"expansion": OneOf(EXPANSIONS)},
        )
    },
)


class Node:
    """One node. url: base URL. sealing_key: X25519, signing_key: Ed25519, 32 bytes each."""

    def __init__(self, address: str) -> None:
        url, _, keys = address.partition("#")
        raw = bytes.fromhex(keys)
        self.url = url[:-1] if url.endswith("/") else url
        self.sealing_key = raw[:KEY_BYTES]
        self.signing_key = raw[KEY_BYTES:]


class SecureSum:
    """A secure sum (DCA Algorithm 1). devices: N; max_faulty: T, the most that may collude or drop out.

    expansion: how a seed is expanded to a share, "chacha20" or "shake_256" (devices without a cipher).
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.nodes: tuple[Node, ...] = tuple(Node(address) for address in parsed["nodes"])
        self.devices: int = parsed["devices"]
        self.max_faulty: int = parsed["max_faulty"]
        self.expansion: str = parsed["expansion"] or EXPANSIONS[0]

    @property
    def min_devices(self) -> int:
        """N − T, the fewest devices in a released sum."""
        return self.devices - self.max_faulty

    @property
    def noise_devices(self) -> int:
        """N − T − 1, the number of devices whose noise protects each device (DCA Theorem 1)."""
        return self.devices - self.max_faulty - 1
