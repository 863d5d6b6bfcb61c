"""An issuer and a collector in one process, a clock, and everything that reaches either of them."""

from __future__ import annotations

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from collector.app import create_app
from collector.db import Database
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.migrations import make
from ldp_client import Direct
from ldp_client.device import outbox
from ldp_client.device.http import Answer
from schemas import Study
from tests import studies
from tests.kit.issuing import BY, block_of, invited, issuer_at
from tests.statistics import seed_the_system

DAY = 86_400
START = 21_000 * DAY
PEOPLE = 16
COLLECTOR, ISSUER_URL = "https://collector.example", "https://issuer.example"
RFC = Path(__file__).parents[1] / "golden" / "rfc" / "rfc9578_public.json"
KEY = load_pem_private_key(bytes.fromhex(json.loads(RFC.read_text())[0]["skS"]), None)


class Seen:
    """One request as a server sees it: when, what it was sent, by what name if it knows one."""

    def __init__(self, moment, body, headers, path):
        self.moment, self.body, self.headers, self.path = moment, body, headers, path
        # Who sent it: what the adversary wants to know.
        self.truth = None


def seed_all(monkeypatch, seed):
    """All that chance decides here follows from a seed, so that a good device never fails by bad luck."""
    seed_the_system(monkeypatch, seed)
    # OpenSSL has a generator of its own.
    monkeypatch.setattr(rsa, "generate_private_key", lambda *_: KEY)


class World:
    """Both servers in this process, a clock, and everything that reaches either of them."""

    def __init__(self, folder, monkeypatch, **settings):
        self.now, self.sender = float(START), None
        self.asked, self.sent = [], []
        monkeypatch.setattr(outbox, "now", lambda: self.now)
        url = f"sqlite:///{folder / 'issuer.sqlite3'}"
        database = Database(url, 5)
        make(database)
        with database.write() as session:
            issue.add_key(session, "survey", {}, BY)
            self.codes = invited(session, "survey", [Person("", {})] * PEOPLE)
            tokens = block_of(session, "survey", ISSUER_URL)
        database.engine.dispose()
        channel = {"batches": {"hours": 24}, "tickets": tokens}
        self.study = Study(studies.document(studies.YES_NO, channel=channel))
        self.issuer = issuer_at(url)
        file = f"sqlite:///{folder / 'collector.sqlite3'}"
        database = Database(file, 5)
        make(database)
        database.engine.dispose()
        self.collector = create_app({"database": file, "token": "operators-token-for-tests", **settings})
        operator = {"Authorization": "Bearer operators-token-for-tests"}
        published = self.collector.test_client().post(
            "/v1/studies", json=self.study.document, headers=operator
        )
        assert published.status_code == 201
        monkeypatch.setattr(Direct, "exchange", lambda _transport, request, _most=0: self.exchange(request))

    def exchange(self, request):
        """The way to both servers, on which they note all that there is to note."""
        is_issuer = request.full_url.startswith(ISSUER_URL)
        app, seen = (self.issuer, self.asked) if is_issuer else (self.collector, self.sent)
        path = request.full_url.split("example", 1)[1]
        headers = dict(request.header_items())
        one = Seen(self.now, request.data, headers, path)
        one.truth = self.sender
        if request.data:
            seen.append(one)
        found = app.test_client().open(path, method=request.get_method(), data=request.data, headers=headers)
        return Answer(found.status_code, found.headers, found.data)

    def close(self):
        self.collector.extensions["ldpkit"].close()
        self.issuer.extensions["ldpkit"].close()
