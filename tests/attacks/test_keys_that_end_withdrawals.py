"""Retire a gateway's key once no open study states it: no later withdrawal reaches the collector.

Defence: `ldpkit oblivious retire`: keeps a key while reports are stored whose devices withdraw with it; the
collector: takes deletions in the clear of a study that had a version without a relay. Known limit: a key
that leaked or is lost; then devices say whom to ask, and `ldpkit status` says of which reports (oblivious
HTTP); in browsers it is shown as an answer with status 400 that is not the collector's.
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
            ["oblivious", "retire", str(self.file), "--database", url, "--number", str(self.number), *more]
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
def test_a_key_stays_while_a_report_could_be_withdrawn_with_it(place, over, capsys):
    getattr(place, over)()
    assert place.retire() == 3
    said = capsys.readouterr().err
    assert f"key {place.number} is what devices withdraw with from relayed, version 1 (2 reports): " in said
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
def test_it_goes_once_these_are_deleted(place, delete, capsys):
    place.close()
    assert place.retire() == 3
    delete(place)
    assert place.retire() == 0
    assert place.numbers() == [place.keys.keys[0].number]
    assert "a report to a study that states it stays on its device" in capsys.readouterr().err


def test_one_that_leaked_goes_at_once_and_what_that_costs_is_said_and_kept(place, capsys):
    place.close()
    assert place.retire("--end-withdrawals") == 0
    said = capsys.readouterr().err
    assert "devices can no more withdraw what is stored of relayed, version 1 (2 reports): " in said
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
def test_one_that_is_killed_has_said_so_and_is_gone_on_with(place, monkeypatch, is_gone):
    """The key was gone, nothing was on record, and the same command knew no such key."""
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


def test_no_option_has_an_open_study_get_no_more_reports(place, capsys):
    assert place.retire("--end-withdrawals") == 3
    assert "is stated by relayed" in capsys.readouterr().err
    assert place.number in place.numbers()


@pytest.mark.parametrize("over", ["second_version", "close"])
def test_the_status_says_whose_reports_no_device_can_withdraw(place, over, make_harness):
    getattr(place, over)()
    assert looked_after(place.harness) == []
    place.retire("--end-withdrawals")
    again = make_harness(ohttp_keys=str(place.file))
    assert [line.split(",")[0] for line in looked_after(again)] == [
        "2 reports of version 1 cannot be withdrawn by devices"
    ]
    # Who has a key that leaked would read what comes under it.
    assert "back, unless it was retired because it leaked;" in looked_after(again)[0]


def looked_after(harness):
    return harness.client.get("/v1/studies/relayed/status", headers=harness.operator).json["attention"]
