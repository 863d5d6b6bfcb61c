"""How reports travel: to one collector, or as secret shares to several nodes that see only a sum."""

from binascii import unhexlify

from ldp_client.documents.fields import LOWER_HEX, Constant, Integer, ListOf, OneOf, Record, Tagged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.fields import Error

KEY_BYTES = 32
EXPANSIONS = ("chacha20", "shake_256")
# Sums are modulo 2**64. With at most this many devices, even the largest statistic cannot wrap.
MOST_DEVICES = 1 << 24
# The fewest devices that neither cheat nor drop out: one client, and two others whose noise protects it.
FEWEST_NOISY = 3


class NodeAddress:
    """A node's base URL, then # and its public keys in hexadecimal: X25519 (sealing), Ed25519 (signing)."""

    def read(self, value: "Any", path: str, error: "Error") -> str:
        address, _, keys = value.partition("#") if isinstance(value, str) else ("", "", "")
        good_address = address.startswith(("http://", "https://")) and not address.endswith("://")
        # A device keeps the addresses of all nodes as one text, with spaces between them.
        good_address = good_address and all(["!" <= c <= "~" for c in address])
        good_keys = len(keys) == 4 * KEY_BYTES and all([c in LOWER_HEX for c in keys])
        if not good_address or not good_keys or len(value) > 500:
            raise error(path, "must be https://host#KEYS, as `ldpkit node keygen` prints it")
        text: str = value
        return text

    def json_schema(self) -> "dict[str, Any]":
        return {"type": "string", "pattern": f'^https?://[!-"$-~]+#[0-9a-f]{{{4 * KEY_BYTES}}}$'}


NODE_ADDRESS = NodeAddress()
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
        raw = unhexlify(keys)
        self.url = url[:-1] if url.endswith("/") else url
        self.sealing_key = raw[:KEY_BYTES]
        self.signing_key = raw[KEY_BYTES:]


class SecureSum:
    """A secure sum (DCA Algorithm 1). devices: N; max_faulty: T, the most that may collude or drop out.

    expansion: how a seed is expanded to a share, "chacha20" or "shake_256" (devices without a cipher).
    """

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.nodes: "tuple[Node, ...]" = tuple([Node(address) for address in parsed["nodes"]])
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
