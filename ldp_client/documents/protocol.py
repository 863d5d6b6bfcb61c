"""How reports travel: to one collector, or as secret shares to several nodes that see only a sum."""

from binascii import unhexlify

from ldp_client.documents.fields import LOWER_HEX, Checked, Constant, Integer, OneOf, consists
from ldp_client.documents.shapes import ListOf, Record, Tagged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


KEY_BYTES = 32
EXPANSIONS = ("chacha20", "shake_256")
# Sums are modulo 2**64. With at most this many devices, even the largest statistic cannot wrap.
MOST_DEVICES = 1 << 24
# The fewest devices that neither cheat nor drop out: one client, and two others whose noise protects it.
FEWEST_NOISY = 3


def _is_node_address(value: "Any") -> bool:
    """Return True for a base URL, then # and keys in hexadecimal: X25519 (sealing), Ed25519 (signing)."""
    address, _, keys = value.partition("#") if isinstance(value, str) else ("", "", "")
    good_address = address.startswith(("http://", "https://")) and not address.endswith("://")
    # A device keeps the addresses of all nodes as one text, with spaces between them.
    good_address = good_address and all(["!" <= c <= "~" for c in address])
    return good_address and len(keys) == 4 * KEY_BYTES and consists(keys, LOWER_HEX) and len(value) <= 500


NODE_ADDRESS = Checked(
    _is_node_address,
    "must be https://host#KEYS, as `ldpkit init --as node` prints it",
    {"type": "string", "pattern": f'^https?://[!-"$-~]+#[0-9a-f]{{{4 * KEY_BYTES}}}$'},
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
