"""How a device reaches its collector: directly, or through a relay that hides its address.

A device has one transport, and every request goes through it: the study, the report, its deletion, and a
token's. Network modules load at the first request, because answering needs no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ldp_client.documents.errors import RefusedError, TransferError

if TYPE_CHECKING:
    import urllib.request

    from ldp_client.device.http import Answer

# The API's paths start with this, after the path of a collector's base URL.
API = "/v1/studies/"
# A gateway serves one collector. Its real address is left out, as it may be unique to this person.
AUTHORITY = "collector"
# An encapsulated request states its length and target elsewhere, and does not name the program.
LEFT_OUT = ("content-length", "host", "user-agent")
KEY_PROBLEM = b"http-problem-types#ohttp-key"
# Temporary client errors: request timeout, too early, too many requests.
TEMPORARY = (408, 425, 429)


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
            request: the request, for a URL of the collector, of an issuer of tickets or of a node.
            most: the bytes of the body to read, 0 for the default.

        Raises:
            TransferError: no answer came; another attempt may succeed.
            RefusedError: no attempt will succeed for a while.
        """
        raise NotImplementedError


class Direct(Transport):
    """Sends each request to its own host, which sees this device's address.

    A request has 20 seconds, verifies TLS certificates and follows no redirect. Requests to other machines
    use the proxy in `https_proxy`, which sees host and port.
    """

    def exchange(self, request: urllib.request.Request, most: int = 0) -> Answer:
        """Make a request as `Transport.exchange` does.

        Args:
            request: as there.
            most: as there.
        """
        from ldp_client.device.http import MOST_BYTES, exchange

        return exchange(request, most or MOST_BYTES)


class Oblivious(Transport):
    """Sends all requests, encrypted for one collector's gateway, through one relay (RFC 9458).

    The relay sees who sends, when, and one of a few sizes. The collector sees the content, and when the relay
    forwards it. The relay reaches this collector alone, so studies with an issuer of tickets or with nodes
    cannot be answered.

    Args:
        relay: the relay's URL; https, or http on this machine.
        key: the gateway's key configuration in base64, as `ldpkit ohttp` prints it.

    Raises:
        InputError: the URL or the key is malformed.
        MissingExtraError: `pyhpke` is not installed.
    """

    # The largest relayed request, less 4 KiB for its headers.
    most_report_bytes = 252 << 10

    def __init__(self, relay: str, key: str) -> None:
        from ldp_client.device.arguments import checked_url
        from ldp_client.oblivious.encapsulation import read_configuration, suite

        # Without `pyhpke` nothing could be sent later.
        suite()
        self.relay = checked_url(relay)[0]
        self._key_id, self._public_key = read_configuration(key)

    def exchange(self, request: urllib.request.Request, most: int = 0) -> Answer:  # noqa: ARG002
        """Make a request as `Transport.exchange` does.

        Args:
            request: for a URL of the collector.
            most: ignored, because relayed answers have fixed sizes.

        Returns:
            The collector's answer.

        Raises:
            TransferError: the relay or the collector is away for now.
            RefusedError: the relay cannot carry the request, or its answer is not the collector's.
        """
        import urllib.request
        from email.message import Message

        from ldp_client.device.http import Answer, exchange
        from ldp_client.oblivious import binary_http, encapsulation

        # 1. Encapsulate the request for the gateway. The relay sees one of a few sizes.
        _, is_api, rest = request.full_url.partition(API)
        if not is_api:
            raise RefusedError(
                f"{request.full_url} is not at the collector, which alone the relay reaches",
                code="device.relay_elsewhere",
            )
        fields = [(name.lower(), value) for name, value in request.header_items()]
        kept = [field for field in fields if field[0] not in LEFT_OUT]
        content = request.data or b""
        assert isinstance(content, bytes)
        inner = binary_http.Request(request.get_method(), AUTHORITY, API + rest, kept, content)
        try:
            padded = binary_http.padded(inner)
            asked = encapsulation.encapsulate(self._key_id, self._public_key, padded)
        except (binary_http.BinaryError, UnicodeEncodeError):
            raise RefusedError(
                "the request is longer than a relayed request may be: is the ticket right?",
                code="device.relay_too_long",
            ) from None
        # 2. Send it to the relay.
        headers = {"Content-Type": encapsulation.REQUEST_TYPE, "User-Agent": "ldpkit"}
        outer_request = urllib.request.Request(self.relay, asked.message, headers, method="POST")
        size = binary_http.answer_bytes(request.get_method()) + encapsulation.ANSWER_OVERHEAD_BYTES
        try:
            outer = exchange(outer_request, size)
        except TransferError as error:
            # The request never reached the collector, which may well be up.
            raise TransferError(
                f"nothing came through its relay {self.relay} ({error})", code="device.relay_away"
            ) from None
        if outer.status != 200 or outer.headers.get_content_type() != encapsulation.ANSWER_TYPE:
            _refuse(self.relay, outer)
        # 3. Open the collector's answer.
        try:
            answer = binary_http.Answer.decode(asked.open(outer.body))
        except (encapsulation.EncapsulationError, binary_http.BinaryError):
            raise RefusedError(
                f"{self.relay} returned an answer that is not the collector's, or not to this request: the "
                "report is kept",
                code="device.relay_garbled",
            ) from None
        headers_of_answer = Message()
        for name, value in answer.fields:
            headers_of_answer[name] = value
        return Answer(answer.status, headers_of_answer, answer.content)


def _refuse(relay: str, outer: Answer) -> NoReturn:
    """Raise the error of an answer that is not encapsulated. It proves nothing about the report."""
    if outer.status == 400 and KEY_PROBLEM in outer.body:
        raise RefusedError(
            f"{relay} says, without proof, that the collector lost this app's key: nothing leaves in the "
            "clear. Try again on another day, then ask the study's contact",
            code="device.relay_key",
        )
    text = f"{relay} answered with HTTP status {outer.status} instead of the collector's answer"
    if outer.status >= 500 or outer.status in TEMPORARY:
        raise TransferError(text, code="device.relay_failed")
    raise RefusedError(text, code="device.relay_refused")
