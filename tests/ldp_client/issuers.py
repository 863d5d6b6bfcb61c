"""An issuer of tickets that lies on demand, its keys, and studies whose reports need them."""

import json
import os
from base64 import b64encode
from functools import cache

from cryptography.hazmat.primitives.asymmetric import rsa

from ldp_client.core.tokens import Asking, challenge_of, draw, short_id_of
from ldp_client.documents.channel import SPKI_HEAD, SPKI_TAIL
from schemas import Study
from tests import studies
from tests.kit.serving import AnsweringServer

HOUR = 3600
REGION = {"id": "region", "choices": ["north", "south"], "source": "ticket"}


class Key:
    def __init__(self):
        numbers = rsa.generate_private_key(65537, 2048).private_numbers()
        self.n, self.d = numbers.public_numbers.n, numbers.d
        self.spki = SPKI_HEAD + self.n.to_bytes(256, "big") + SPKI_TAIL
        self.text = b64encode(self.spki).decode()

    def sign(self, blinded):
        return pow(int.from_bytes(blinded, "big"), self.d, self.n).to_bytes(256, "big")


@cache
def keys():
    """Two keys, made once; their ids differ in the byte that requests have, as an issuer sees to."""
    first, second = Key(), Key()
    while short_id_of(second.spki) == short_id_of(first.spki):
        second = Key()
    return first, second


def channel_of(issuer, *public, hours=24):
    """A channel with tokens of one key, or of one for each stratum."""
    listed = [{"key": keys()[0].text}]
    if public:
        listed = [{"key": key.text, "public": values} for key, values in zip(keys(), public)]
    return {"batches": {"hours": hours}, "tickets": {"issuer": issuer, "keys": listed}}


def study_of(issuer, question=studies.YES_NO, **fields):
    return Study(studies.document(question, channel=channel_of(issuer), **fields))


def token_of(study, place=0, nonce=None):
    """A token for a study, as if its issuer had been asked."""
    stated = study.channel.tickets
    challenge = challenge_of(stated.name, study.digest)
    _, salt, factor = draw(stated.keys[place], os.urandom)
    asking = Asking(stated.keys[place], challenge, nonce or os.urandom(32), salt, factor)
    return asking.token(keys()[place].sign(asking.body[3:]), os.urandom)


class Issuer(AnsweringServer):
    """An issuer that answers as a test says.

    Attributes:
        answers: functions of (body, headers) that give (status, media type, content), one for each request to
            come; then honest ones.
        requests: (path, body, headers).
    """

    def __init__(self):
        self.requests, self.answers = [], []
        super().__init__()
        self.url = f"http://{self.address}"

    def respond(self, method, path, body, headers):
        # Pages may ask too.
        allowed = {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Headers": "Content-Type, LDPKit-Ticket",
        }
        if method == "OPTIONS":
            return 204, allowed, b""
        self.requests.append((path, body, {name.lower(): value for name, value in headers.items()}))
        found = (self.answers.pop(0) if self.answers else honest)(body, headers)
        if found is None:
            return None
        status, media_type, content = found
        moved = {"Location": content.decode()} if status in (302, 307) else {}
        length = {"Content-Length": str(len(content))}
        return status, {**allowed, "Content-Type": media_type, **moved, **length}, content


RESPONSE = "application/private-token-response"


def honest(body, _headers):
    return 200, RESPONSE, keys()[0].sign(body[3:])


def other_key(body, _headers):
    return 200, RESPONSE, keys()[1].sign(body[3:])


def lost(_body, _headers):
    """The connection ends without an answer."""


def refusing(status, name, **more):
    def answer(_body, _headers):
        document = {"type": f"urn:ldpkit:problem:{name}", "detail": "in words", **more}
        return status, "application/problem+json", json.dumps(document).encode()

    return answer
