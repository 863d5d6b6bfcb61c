"""A gateway's key is retired once no open study states it: later withdrawals do not reach the collector.

Defence: `ldpkit ohttp retire`: keeps a key while stored reports can only be withdrawn with it; the
collector: accepts deletions in the clear for a study that had a version without a relay. Known limit: a
key that leaked or is lost; then devices say whom to ask, and `ldpkit status` lists the reports (oblivious
HTTP); browsers show it as an answer with status 400 that is not the collector's.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date

import pytest

from collector.oblivious.keys import GatewayKeys
from ldp_client.cli import main
from tests.kit.deleting import delete_reports, delete_study
from tests.oblivious.conftest import relayed_study

RELAY = "https://relay.example/ldpkit"


class Place:
    """A collector with a newer key; two reports were given to a version that states the older one."""

    def __init__(self, make_harness, make_report, folder):
        self.file = folder / "ohttp.keys"
        self.old = GatewayKeys.generate()
        self.keys = self.old.rotated()
        self.keys.save(self.file)
        self.harness = make_harness(ohttp_keys=str(self.file))
        study = relayed_study(RELAY, self.old, id="relayed")
        assert self.harness.publish(study).status_code == 201
        self.reports = [make_report(study) for _ in range(2)]
        assert [self.harness.put(report).status_code for report in self.reports] == [201, 201]
        self.number = self.old.keys[0].number

    @property
    def database(self):
        return self.harness.collector.database

    def retire(self, *more):
        url = f"sqlite:///{self.harness.path}"
        return main(
            ["ohttp", "retire", str(self.file), "--database", url, "--number", str(self.number), *more]
        )

    def numbers(self):
        return [key.number for key in GatewayKeys.load(self.file).keys]

    def second_version(self):
        second = relayed_study(RELAY, self.keys, id="relayed", version=2)
        assert self.harness.publish(second).status_code == 201

    def close(self):
        assert self.harness.close("relayed").status_code == 200


@pytest.fixture
def place(make_harness, make_report, tmp_path):
    return Place(make_harness, make_report, tmp_path)


@pytest.mark.parametrize("over", ["second_version", "close"])
def test_gateway_key_is_kept_while_reports_can_be_withdrawn(place, over, capsys):
    getattr(place, over)()
    assert place.retire() == 3
    said = capsys.readouterr().err
    assert f"devices need key {place.number} to withdraw from relayed, version 1 (2 reports): " in said
    assert "--end-withdrawals" in said
    assert said.count("\n") == 1
    assert place.number in place.numbers()


def delete_by_operator(place):
    for report in place.reports:
        assert place.harness.withdraw(report.id, "relayed").status_code == 200


def expire(place):
    delete_reports(place.database, "relayed", date.max)


def delete_all(place):
    delete_study(place.database, "relayed")


@pytest.mark.parametrize("delete", [delete_by_operator, expire, delete_all])
def test_gateway_key_is_retired_once_reports_are_deleted(place, delete, capsys):
    place.close()
    assert place.retire() == 3
    delete(place)
    assert place.retire() == 0
    assert place.numbers() == [place.keys.keys[0].number]
    assert "a report to a study that states it stays on its device" in capsys.readouterr().err


def test_end_withdrawals_option_retires_leaked_key_and_logs_it(place, capsys):
    place.close()
    assert place.retire("--end-withdrawals") == 0
    said = capsys.readouterr().err
    assert "devices can no longer withdraw from relayed, version 1 (2 reports): " in said
    assert said.count("\n") == 1
    assert place.numbers() == [place.keys.keys[0].number]
    log = place.harness.client.get("/v1/audit-log", headers=place.harness.operator).json["entries"]
    ended = [entry for entry in log if entry["action"] == "end withdrawals"]
    detail = f"key {place.number} of the gateway, version 1"
    assert [(entry["study"], entry["detail"]) for entry in ended] == [("relayed", detail)]


def ended(place):
    log = place.harness.client.get("/v1/audit-log", headers=place.harness.operator).json["entries"]
    return [entry["study"] for entry in log if entry["action"] == "end withdrawals"]


@pytest.mark.parametrize("is_gone", [True, False], ids=["behind the file", "before it"])
def test_killed_retire_is_logged_and_can_be_repeated(place, monkeypatch, is_gone):
    """The key used to be gone without a record, and repeating the command failed as the key was unknown."""
    place.close()
    genuine = GatewayKeys.replace

    def killed(keys, path):
        if is_gone:
            genuine(keys, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(GatewayKeys, "replace", killed)
        with suppress(KeyboardInterrupt):
            place.retire("--end-withdrawals")
    assert (place.number in place.numbers()) != is_gone
    assert ended(place) == ["relayed"]
    assert place.retire("--end-withdrawals") == (3 if is_gone else 0)
    assert place.numbers() == [place.keys.keys[0].number]


def test_key_of_an_open_study_cannot_be_retired(place, capsys):
    assert place.retire("--end-withdrawals") == 3
    assert "is stated by relayed" in capsys.readouterr().err
    assert place.number in place.numbers()


@pytest.mark.parametrize("over", ["second_version", "close"])
def test_status_lists_reports_that_devices_cannot_withdraw(place, over, make_harness):
    getattr(place, over)()
    assert looked_after(place.harness) == []
    place.retire("--end-withdrawals")
    again = make_harness(ohttp_keys=str(place.file))
    assert [line.split(":")[0] for line in looked_after(again)] == [
        "devices cannot withdraw 2 reports of version 1"
    ]
    # A thief of a leaked key could read what is encrypted to it.
    assert "if the key leaked or is lost, delete on request" in looked_after(again)[0]


def looked_after(harness):
    return harness.client.get("/v1/studies/relayed/status", headers=harness.operator).json["attention"]
