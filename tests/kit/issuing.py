"""An issuer of tickets in this process, and what asks it for them."""

import csv
import os
from contextlib import contextmanager
from functools import cache

import pytest

from collector.db import Database
from collector.issuer import issue
from collector.issuer.app import create_issuer_app
from collector.issuer.issue import Person
from collector.issuer.signing import new_pair
from ldp_client.core.tokens import Asking, challenge_of, draw, short_id_of
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.channel import TokenKey
from tests.kit.collectors import ensure_database
from tests.kit.operators import TOKEN, operate

TYPES = {"Content-Type": "application/private-token-request"}
NORTH, SOUTH = {"region": "north"}, {"region": "south"}
BY = "ann"
TWO = (Person("Ada", NORTH), Person("", SOUTH))


def issuer_at(url, **more):
    """The issuer's application on a database."""
    return create_issuer_app({"database": url, "token": TOKEN}, **more)


def invited(session, study_id, people):
    """The new tickets of people."""
    return issue.invite(session, study_id, people, BY)[0]


def block_of(session, study_id, issuer):
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
    """An issuer of the study `habits`, by default with two strata and one person in each.

    Its application is opened when it is asked, and again after `close`, as a server that was started again.
    """

    def __init__(self, url, strata=(NORTH, SOUTH), people=TWO):
        self.url, self._app, pairs = url, None, iter(made_pairs())
        ensure_database(url)
        with pytest.MonkeyPatch.context() as patch, self.writing() as session:
            patch.setattr(issue, "new_pair", lambda: next(pairs))
            for public in strata:
                issue.add_key(session, "habits", public, BY)
            self.codes = [code for person in people for code in invited(session, "habits", [person])]
            spki = [row.spki for row in issue.keys_of(session, "habits")]
        self.keys = [TokenKey({"key": key, "public": None}) for key in spki]

    @contextmanager
    def writing(self):
        """A session on the database, as another process has it."""
        database = Database(self.url, 5)
        with database.write() as session:
            yield session
        database.engine.dispose()

    @property
    def app(self):
        self._app = self._app or issuer_at(self.url)
        return self._app

    def close(self):
        if self._app:
            self._app.extensions["ldpkit"].close()
        self._app = None

    def asking(self, place=0):
        """A request for a token, and what makes the answer one."""
        key = self.keys[place]
        return Asking(key, challenge_of("issuer.example", "ab" * 32), *draw(key, os.urandom))

    def ask(self, body, code=None, **headers):
        """Send a request with a code."""
        along = {**TYPES, **({"LDPKit-Ticket": code} if code else {}), **headers}
        return self.app.test_client().post("/v1/tokens", data=body, headers=along)

    def status(self, code):
        """The status of the answer to a new request with a code."""
        return self.ask(self.asking().body, code).status_code

    def run(self, *words):
        """Run an operator's command at it; it succeeds, or raises what it refuses with."""
        operate(self.app, *words)

    def invite(self, out, *more, names="people.csv"):
        """Invite those whom a list names; without a list, so many people; {name: code}, or codes."""
        whom = ("--names", names) if names else ()
        self.run("invite", "habits", *whom, "--out", out, *more)
        with open(out, newline="") as file:
            rows = list(csv.DictReader(file))
        return {row["name"]: row["ticket"] for row in rows} if names else [row["ticket"] for row in rows]

    def counts(self):
        """Of each key: tickets that are valid, and tokens that were given."""
        with self.writing() as session:
            return [(one.tickets, one.tokens) for one in issue.counts(session, "habits")]
