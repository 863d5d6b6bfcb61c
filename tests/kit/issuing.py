"""An issuer of tickets in this process, and what asks it for them."""

from __future__ import annotations

import base64
import json
import os
from functools import cache

import pytest

from collector.db import Database
from collector.issuer import issue
from collector.issuer.app import create_issuer_app
from collector.issuer.issue import Person
from collector.issuer.signing import new_pair
from collector.migrations import make
from ldp_client.core.tokens import Asking, challenge_of, draw, short_id_of
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.channel import TokenKey
from tests.kit.operators import TOKEN

TYPES = {"Content-Type": "application/private-token-request"}
NORTH, SOUTH = {"region": "north"}, {"region": "south"}
BY = "ann"


def issuer_at(url, **more):
    """The issuer's application on a database."""
    return create_issuer_app({"database": url, "token": TOKEN}, **more)


def invited(session, study_id, people):
    """The new tickets of people."""
    return issue.invite(session, study_id, people, BY)[0]


def block_of(session, study_id, issuer="https://issuer.example"):
    """What the study's document states, as `ldpkit tickets key` prints it."""
    keys = [
        {"key": to_base64(one.key), **({"public": one.public} if one.public else {})}
        for one in issue.counts(session, study_id)
    ]
    return {"issuer": issuer, "keys": keys}


@cache
def made_pairs():
    """Two key pairs, made once; their ids differ in the byte that requests have."""
    first, second = new_pair(), new_pair()
    while short_id_of(second[0]) == short_id_of(first[0]):
        second = new_pair()
    return first, second


class Office:
    """An issuer with a study of two strata, and one person in each."""

    def __init__(self, url):
        self.url, self.database = url, Database(url, 5)
        make(self.database)
        pairs = iter(made_pairs())
        with pytest.MonkeyPatch.context() as patch, self.database.write() as session:
            patch.setattr(issue, "new_pair", lambda: next(pairs))
            for public in (NORTH, SOUTH):
                issue.add_key(session, "habits", public, BY)
            self.codes = invited(session, "habits", [Person("Ada", NORTH)])
            self.codes += invited(session, "habits", [Person("", SOUTH)])
            self.keys = [
                TokenKey({"key": row.spki, "public": None}) for row in issue.keys_of(session, "habits")
            ]
        self.app = issuer_at(url)
        self.client = self.app.test_client()

    def close(self):
        self.app.extensions["ldpkit"].close()
        self.database.engine.dispose()

    def asking(self, place=0):
        key = self.keys[place]
        return Asking(key, challenge_of("issuer.example", "ab" * 32), *draw(key, os.urandom))

    def ask(self, body, code=None, **headers):
        along = {**TYPES, **({"LDPKit-Ticket": code} if code else {}), **headers}
        return self.client.post("/v1/tokens", data=body, headers=along)


def ask(client, code):
    """Asks for a token by the first key of the study."""
    (key,) = json.loads(client.get("/.well-known/private-token-issuer-directory").data)["token-keys"]
    spki = base64.urlsafe_b64decode(key["token-key"] + "===")
    known = TokenKey({"key": spki, "public": None})
    body = Asking(known, challenge_of("issuer.example", "ab" * 32), *draw(known, os.urandom)).body
    return client.post("/v1/tokens", data=body, headers={**TYPES, "LDPKit-Ticket": code})
