"""A JavaScript device and another library with `ldpkit issuer` and `ldpkit serve` as they run."""

import json
import subprocess

import pytest

from collector.remote.download import fetch_reports
from schemas import Study
from tests import studies
from tests.collector.conftest import TOKEN
from tests.portable import npm
from tests.portable.issuer_server import IssuerServer
from tests.portable.platforms import JAVASCRIPT
from tests.portable.test_ledgers import INDEX

REGION = {"id": "region", "choices": ["north", "south"], "source": "invitation"}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    started = IssuerServer(tmp_path_factory.mktemp("issuer"))
    yield started
    started.close()


def publish(server, issuer, name, strata=(), **more):
    study = Study(studies.document(studies.YES_NO, id=name, channel=issuer.channel(name, *strata), **more))
    server.request("POST", "/v1/studies", study.document)
    return study


def steps_of(server, study, folder, *steps):
    arguments = [INDEX, "node", folder / "kept.db", server.url, study.canonical().decode(), json.dumps(steps)]
    command = [npm.newer_node(), "channel.mjs", *map(str, arguments)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def answered(code):
    return [["answer", {"ever": "yes"}, code], ["consent"]]


def test_a_report_with_its_token_is_stored_once(server, issuer, tmp_path):
    study = publish(server, issuer, "habits")
    (code,) = issuer.codes(study.id, 1)
    *_, asked, _, sent, report = steps_of(
        server, study, tmp_path, *answered(code), ["flush"], ["due"], ["flush"], ["report"]
    )
    assert (asked, sent) == ("queued", "sent")
    (stored,) = fetch_reports(server.url, study.id, TOKEN)
    assert stored.to_json() == report["body"]
    assert "1 of 1 code got a token" in issuer.status(study.id)


def test_one_code_admits_one_report(server, issuer, tmp_path):
    study = publish(server, issuer, "once")
    (code,) = issuer.codes(study.id, 1)
    (tmp_path / "other").mkdir()
    steps_of(server, study, tmp_path, *answered(code), ["flush"], ["due"], ["flush"])
    *_, state, report = steps_of(server, study, tmp_path / "other", *answered(code), ["flush"], ["report"])
    assert (state, report["reason"]) == ("uninvited", "issuer problem 409 token-issued")
    assert len(list(fetch_reports(server.url, study.id, TOKEN))) == 1


def test_collector_derives_the_stratum_from_the_key(server, issuer, tmp_path):
    """The issuer names the key; the report says nothing of it."""
    study = publish(server, issuer, "strata", ("region=north", "region=south"), public=[REGION])
    (code,) = issuer.codes(study.id, 1, "region=south")
    *_, sent, report = steps_of(
        server, study, tmp_path, *answered(code), ["flush"], ["due"], ["flush"], ["report"]
    )
    assert sent == "sent"
    assert "south" not in report["body"]
    (stored,) = fetch_reports(server.url, study.id, TOKEN)
    assert stored.public == {"region": "south"}


def test_a_sent_report_is_withdrawn(server, issuer, tmp_path):
    study = publish(server, issuer, "withdrawn")
    (code,) = issuer.codes(study.id, 1)
    sent = [*answered(code), ["flush"], ["due"], ["flush"]]
    *_, asked, _, _, left = steps_of(
        server, study, tmp_path, *sent, ["withdraw"], ["flush"], ["due"], ["flush"]
    )
    assert (asked, left) == (1, "gone")
    assert list(fetch_reports(server.url, study.id, TOKEN)) == []


def test_another_librarys_client_gets_a_token(server, issuer):
    """@cloudflare/privacypass-ts asks `ldpkit issuer`, and checks what it gets by the study's key."""
    study = publish(server, issuer, "peer")
    given = {
        "issuer": issuer.url,
        "key": study.document["channel"]["tokens"]["keys"][0]["key"],
        "digest": study.digest,
        "invitation": issuer.codes(study.id, 1)[0],
    }
    command = [npm.newer_node(), "token_peer.mjs", JAVASCRIPT / "tokens.js", json.dumps(given)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert (found["oursFromItsIssuer"], found["itsFromOurIssuer"]) == (True, True)
