"""The JavaScript library by node: its modules, its ledger under races and kills, and real collectors."""

import json
import os
import runpy
import sqlite3
import subprocess
from base64 import b64encode
from pathlib import Path
from threading import Thread

import pytest

from collector.oblivious import GatewayKeys
from schemas import Study
from tests import studies
from tests.kit import collector_fixtures
from tests.kit.collectors import Server
from tests.kit.failing_disk import FailingDisk
from tests.kit.issuing import Office, block_of
from tests.kit.programs import output_of
from tests.kit.serving import served
from tests.portable import npm
from tests.portable.participant import stored_at

start_server = collector_fixtures.start_server
FOLDER = Path(__file__).parent
FILES = sorted(path.name.removesuffix(".test.mjs") for path in FOLDER.glob("*.test.mjs"))
NUMBERS = json.dumps(studies.document(studies.NUMBER))


@pytest.mark.processes
@pytest.mark.parametrize("name", FILES)
def test_modules_keep_their_rules(name):
    command = [npm.newer_node(), "--disable-warning=ExperimentalWarning", f"{name}.test.mjs"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or "pass 0" in done.stdout:
        pytest.fail(f"{name}\n{(done.stdout + done.stderr)[-6000:]}", pytrace=False)


def answering(folder, count):
    """Start a process that answers on one ledger after the other, and prints what became of it."""
    command = [npm.newer_node(), "ledger_race.mjs", folder, str(count), NUMBERS]
    return subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_processes_race_for_one_report_each(tmp_path):
    racing = [answering(tmp_path, 6) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in racing]
    assert [process.returncode for process in racing] == [0, 0]
    for one, other in zip(*(map(json.loads, lines) for lines in said)):
        assert [one[1], other[1]].count("answered") == 1
    assert not list(tmp_path.glob("*-journal"))


@pytest.mark.slow
def test_killed_process_stores_spend_and_report_or_neither(tmp_path):
    """It is killed after one answer, two and three, wherever it is by then."""
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = answering(folder, 10_000)
        said = [json.loads(process.stdout.readline()) for _ in range(1 + number)]
        process.kill()
        said += [json.loads(line) for line in process.stdout.read().splitlines()]
        process.wait()
        told = dict(said)
        for file in folder.glob("*.db"):
            with sqlite3.connect(file) as database:
                (made,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
                text = made and database.execute("SELECT memory FROM ldpkit_ledger").fetchone()[0]
            memory = json.loads(text or '{"spent": [], "reports": []}')
            assert len(memory["spent"]) == len(memory["reports"]) <= 1
            if int(file.stem) in told:
                assert [report["body"] for report in memory["reports"]] == [told[int(file.stem)]]


def device(ledger, collector, study, *steps, relay=None, **environment):
    """What each step of channel.mjs gave, by a device on the ledger in that file."""
    arguments = [str(ledger), collector, study.to_json(), json.dumps(steps)]
    command = [npm.newer_node(), "channel.mjs", *arguments, *([json.dumps(relay)] if relay else [])]
    return json.loads(output_of(*command, cwd=FOLDER, env={**os.environ, **environment}))


@pytest.mark.slow
@pytest.mark.attack(11)
@pytest.mark.needs("gcc")
def test_withdrawal_survives_a_loss_of_power(tmp_path):
    """The power fails after a withdrawal, and SQLite's journal would restore the report."""
    disk = FailingDisk(tmp_path)
    at = disk.root / "kept.db", "http://127.0.0.1:9", Study(studies.document(studies.NUMBER))
    device(*at, ["answer", {"hours": 3}], ["consent"])
    disk.keep()
    assert device(*at, ["withdraw"], **disk.environment) == [0]
    disk.lose_power()
    assert device(*at, ["report"]) == [None]


REGION = {"id": "region", "choices": ["north", "south"], "source": "ticket"}


def answered(*code):
    return [["answer", {"ever": "yes"}, *code], ["consent"]]


@pytest.mark.slow
def test_report_with_its_token_is_stored_once_and_withdrawn(start_server, tmp_path):
    """The issuer names the key of the stratum, and the collector derives the stratum from it."""
    server = start_server()
    office = Office(f"sqlite:///{tmp_path / 'issuer.sqlite3'}")
    _, code = office.codes
    sending = [["flush"], ["due"], ["flush"]]
    with served(office.app) as url:
        with office.writing() as session:
            channel = {"batches": {"hours": 24}, "tickets": block_of(session, "habits", url)}
        study = Study(studies.document(studies.YES_NO, id="habits", channel=channel, public=[REGION]))
        assert server.request("POST", "/v1/studies", study.document) == 201
        first, second = [(tmp_path / f"{name}.db", server.url, study) for name in ("first", "second")]
        *_, asked, _, sent, report = device(*first, *answered(code), *sending, ["report"])
        *_, state, other = device(*second, *answered(code), ["flush"], ["report"])
    office.close()
    assert (asked, sent) == ("queued", "sent")
    assert (state, other["reason"]) == ("ticketless", "issuer problem 409 ticket-spent")
    (stored,) = stored_at(server, study.id)
    assert "south" not in report["body"]
    assert stored.public == {"region": "south"}
    *_, left = device(*first, ["withdraw"], *sending)
    assert left == "gone"
    assert stored_at(server, study.id) == []


@pytest.fixture
def relayed(tmp_path):
    """A collector behind a relay alone, and the options for the relay."""
    keys = GatewayKeys.generate()
    keys.save(tmp_path / "ohttp.keys")
    environment = {"LDPKIT_OHTTP_KEYS": "ohttp.keys", "LDPKIT_REQUIRE_OHTTP": "true"}
    with Server(tmp_path, environment=environment) as collector:
        make_relay = runpy.run_path(str(npm.REPOSITORY / "examples" / "relay.py"))["Relay"]
        relay = make_relay(f"{collector.url}/ohttp", "127.0.0.1", 0)
        thread = Thread(target=relay.serve_forever, args=(0.01,))
        thread.start()
        options = {"relay": f"{relay.url}/ldpkit", "keys": b64encode(keys.keys[0].configuration).decode()}
        yield collector, options
        relay.shutdown()
        thread.join()
        relay.server_close()


@pytest.mark.slow
def test_every_request_goes_through_the_relay(relayed, tmp_path):
    collector, relay = relayed
    study = Study(studies.document(studies.YES_NO))
    assert collector.request("POST", "/v1/studies", study.document) == 201
    at = tmp_path / "kept.db", "http://localhost:9", study
    sent = device(*at, ["fetched"], *answered(), ["flush"], ["report"], relay=relay)
    assert (sent[0], sent[-2]) == (study.id, "sent")
    assert sent[-1]["id"] in collector.read(f"/v1/studies/{study.id}/export")
    assert device(*at, ["withdraw"], ["flush"], relay=relay) == [1, "gone"]
    assert sent[-1]["id"] not in collector.read(f"/v1/studies/{study.id}/export")
