"""Taking answers back: wiped here, deleted there, never answered again."""

import pytest

from ldp_client import Device
from ldp_client.device import verdicts
from ldp_client.device.requests import Outcome
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError
from ldpkit import cli
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting, problem

STUDY = Study(studies.document(studies.YES_NO))
YES = {"ever": True}


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as server:
        yield server


def test_unsent_report_is_wiped_without_a_request(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    report_id = device.answer(STUDY, YES)
    body = device.ledger.queued()[0].body
    assert device.withdraw("survey") == 0
    assert device.ledger.queued() == []
    flushed = device.flush()
    assert (flushed.sent, flushed.deleted, server.requests) == (0, 0, [])
    for file in tmp_path.iterdir():
        assert report_id.encode() not in file.read_bytes()
        assert body.encode() not in file.read_bytes()


def test_deletion_is_retried_until_acknowledged(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    report_id = device.answer(STUDY, YES)
    assert device.flush().sent == 1
    assert device.withdraw("survey") == 1
    server.statuses = [503, 500, 403]
    for reason in ("503", "500", "403"):
        flushed = consenting(tmp_path, "4", server.url).flush(attempts=1)
        assert (flushed.deleted, flushed.undeleted) == (0, 1)
        assert reason in flushed.reason
    assert consenting(tmp_path, "4", server.url).flush().deleted == 1
    assert server.asked("DELETE") == [f"/v1/studies/survey/reports/{report_id}"] * 4
    assert not any(vars(device.flush()).values())
    assert report_id.encode() not in (tmp_path / "ledger.sqlite3").read_bytes()


def test_withdrawn_answer_stays_charged_and_is_not_asked_again(tmp_path, server):
    device = Device(tmp_path, "4", server.url)
    device.consent(STUDY)
    device.answer(STUDY, YES)
    device.withdraw("survey")
    assert device.epsilon_left == 3
    with raises(RefusedError, "device.no_consent"):
        device.answer(STUDY, YES)
    device.consent(STUDY)
    with pytest.raises(AlreadyAnsweredError):
        device.answer(STUDY, YES)


def test_a_report_whose_acknowledgement_was_lost_is_deleted_and_never_sent_again(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    server.statuses = [503]
    assert device.flush(attempts=1).waiting == 1
    assert device.withdraw("survey") == 1
    assert device.flush().deleted == 1
    assert [len(server.asked(method)) for method in ("PUT", "DELETE")] == [1, 1]


@pytest.mark.parametrize("final", [404, 422])
def test_a_report_that_was_refused_after_its_acknowledgement_was_lost_is_deleted(tmp_path, server, final):
    """The first attempt was taken, and its answer lost; a proxy says no to the next."""
    device = consenting(tmp_path, "4", server.url)
    report_id = device.answer(STUDY, YES)
    body = device.ledger.queued()[0].body
    server.statuses = [503]
    device.flush(attempts=1)
    server.statuses, server.refusals = [final], {final: problem("report-invalid", STUDY.digest)}
    assert len(device.flush(attempts=1).refused) == 1
    assert device.ledger.queued() == []
    assert device.flush().refused == []
    assert body.encode() not in (tmp_path / "ledger.sqlite3").read_bytes()
    assert device.withdraw("survey") == 1
    assert device.flush().deleted == 1
    assert server.asked("DELETE") == [f"/v1/studies/survey/reports/{report_id}"]


def test_withdrawal_at_another_collector_is_refused(tmp_path, server, capsys):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    assert device.flush().sent == 1
    alias = server.url.replace("127.0.0.1", "localhost")
    url = f"{alias}/v1/studies/survey"
    assert cli.main(["withdraw", url, "--folder", str(tmp_path)]) != 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "has not answered study survey of this collector" in told.err
    assert device.withdraw("survey") == 1
    elsewhere = consenting(tmp_path, "4", alias).flush()
    assert elsewhere.undeleted == 1
    assert f"it belongs to the collector {server.url}: name that collector" in elsewhere.reason
    assert server.asked("DELETE") == []
    assert consenting(tmp_path, "4", server.url).flush().deleted == 1


def test_a_collector_may_be_spelled_in_any_way(tmp_path, server):
    """This includes a ledger that stored the given spelling."""
    device = consenting(tmp_path, "4", server.url.replace("http://", "HTTP://") + "/")
    device.answer(STUDY, YES)
    with device.ledger.writing() as connection:
        connection.execute("UPDATE reports SET collector = ?", (server.url.replace("http", "HTTP") + "/",))
    assert device.flush().sent == 1
    device.withdraw("survey")
    assert consenting(tmp_path, "4", server.url).flush().deleted == 1


def test_withdrawal_during_an_upload_deletes_the_report_after(tmp_path, server, monkeypatch):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    put = verdicts.put_report

    def put_and_withdraw(transport, url, body, *_):
        other = consenting(tmp_path, "4", server.url)
        assert other.withdraw("survey") == 1
        # Another process must not send the deletion before the report has arrived.
        assert other.flush().reason == "another process of this device is sending"
        return put(transport, url, body)

    monkeypatch.setattr(verdicts, "put_report", put_and_withdraw)
    flushed = device.flush()
    assert (flushed.sent, flushed.deleted) == (1, 1)
    assert [method for method, *_ in server.requests] == ["PUT", "DELETE"]


def test_report_withdrawn_during_a_flush_is_not_sent(tmp_path, server, monkeypatch):
    second = Study(studies.document(studies.YES_NO, id="second"))
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    device.answer(second, YES)

    def put_and_withdraw(_transport, url, *_):
        for study in ("survey", "second"):
            if study not in url:
                device.withdraw(study)
        return Outcome("sent")

    monkeypatch.setattr(verdicts, "put_report", put_and_withdraw)
    assert device.flush().sent == 1
    assert server.asked("DELETE") == []


def test_withdrawal_affects_only_the_named_study(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    device.answer(Study(studies.document(studies.YES_NO, id="another")), YES)
    assert device.withdraw("another") == 0
    assert device.flush().sent == 1


def test_withdraw_command_reports_errors_and_counts(tmp_path, server, capsys):
    url, folder = f"{server.url}/v1/studies/survey", str(tmp_path)
    assert cli.main(["withdraw", url, "--folder", folder]) == 3
    assert "has not answered study survey" in capsys.readouterr().err
    assert (
        cli.main(["answer", "--max-epsilon", "8", url, "--folder", folder, "--set", "ever=yes", "--yes"]) == 0
    )
    server.statuses = [400]
    assert cli.main(["withdraw", url, "--folder", folder]) == 5
    assert "400" in capsys.readouterr().err
    assert cli.main(["withdraw", url, "--folder", folder]) == 0
    assert "0 reports sent, 1 deleted" in capsys.readouterr().out


def test_withdraw_command_revokes_an_unused_consent(tmp_path, server, capsys):
    device = Device(tmp_path, "4", server.url)
    device.consent(device.fetch("survey"))
    assert cli.main(["withdraw", f"{server.url}/v1/studies/survey", "--folder", str(tmp_path)]) == 0
    assert "0 reports to be deleted" in capsys.readouterr().out
    with raises(RefusedError, "device.no_consent"):
        device.answer(STUDY, YES)
    assert cli.main(["withdraw", f"{server.url}/v1/studies/another", "--folder", str(tmp_path)]) == 3
