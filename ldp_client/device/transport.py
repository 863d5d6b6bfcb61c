"""How a device reaches its collector: directly, or through a relay that hides its address.

A device has one transport, and every request goes through it: the study, the report, its deletion, and a
token's. Network modules load at the first request, because answering needs no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_client.documents.errors import RefusedError

if TYPE_CHECKING:
    import urllib.request

    from ldp_client.device.exchange import Answer


class Transport:
    """Makes the requests of a device.

    Attributes:
        relay: the base URL of the only host that is contacted, "" if requests go to their own hosts.
        most_report_bytes: the largest report that can be sent.
    """

    relay = ""
    most_report_bytes = 1 << 20

    def exchange(self, request: urllib.request.Request, most: int = 0) -> Answer:
        """Make a request and return its whole answer, whatever its status.

        Args:
            request: the request, for a URL of the collector, of an issuer of tokens or of a node.
            most: the bytes of the body to read, 0 for the default.

        Raises:
            TransferError: no answer came; another attempt may succeed.
            RefusedError: no attempt will succeed for a while.
        """
        raise NotImplementedError


class Direct(Transport):
    """Sends each request to its own host, which sees this device's address.

    A request has 20 seconds and verifies TLS certificates. Redirects stay on the host and port, at most 5.
    Requests to other machines use the proxy in `https_proxy`, which sees host and port.
    """

    def exchange(self, request: urllib.request.Request, most: int = 0) -> Answer:
        """Make a request as `Transport.exchange` does.

        Args:
            request: as there.
            most: as there.
        """
        from ldp_client.device.exchange import MOST_BYTES, exchange

        return exchange(request, most or MOST_BYTES)


class KeyGoneError(RefusedError):
    """The relay says that a deletion cannot reach the collector.

    Nothing proves it, so the deletion is retried. If it is true, no attempt succeeds until people have acted.
    """

    code = "device.relay_key_deletion"


class Oblivious(Transport):
    """Sends all requests, encrypted for one collector's gateway, through one relay (RFC 9458).

    The relay sees who sends, when, and one of a few sizes. The collector sees the content, and when the relay
    forwards it. The relay reaches this collector alone, so studies with an issuer of tokens or with nodes
    cannot be answered.

    Args:
        relay: the relay's URL; https, or http on this machine.
        key: the gateway's key configuration in base64, as `ldpkit ohttp show` prints it.

    Raises:
        InputError: the URL or the key is malformed.
        MissingExtraError: `pyhpke` is not installed.
    """

    # The largest relayed request, less 4 KiB for its headers.
    most_report_bytes = 252 << 10

    def __init__(self, relay: str, key: str) -> None:
        from ldp_client.device.policy import checked_url
        from ldp_client.oblivious.encapsulation import read_configuration, require_hpke

        require_hpke()
        self.relay = checked_url(relay)[0]
        self._key_id, self._public_key = read_configuration(key)

    def exchange(self, request: urllib.request.Request, most: int = 0) -> Answer:  # noqa: ARG002
        """Make a request as `Transport.exchange` does.

        Args:
            request: for a URL of the collector.
            most: ignored, because relayed answers have fixed sizes.
        """
        from ldp_client.device.relayed import ask_through

        return ask_through(self.relay, self._key_id, self._public_key, request)
