"""What an app passes to a device: checked in one line, before anything is made."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.device.arguments import checked_url, folder_of, origin_of
from ldp_client.documents.errors import AlreadyAnsweredError, InputError, LedgerError
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, YES, consenting
from tests.portable.vectors import FOLDER

ORIGINS = json.loads((FOLDER / "origins.json").read_text(encoding="utf-8"))["origins"]


@pytest.mark.parametrize("entry", ORIGINS, ids=lambda entry: entry["url"])
def test_origin_is_the_same_in_python_and_javascript(entry):
    if entry["origin"] is None:
        with pytest.raises(InputError):
            checked_url(entry["url"])
    else:
        assert origin_of(checked_url(entry["url"])[0]) == entry["origin"]


def test_a_collector_has_one_spelling(tmp_path):
    device = consenting(tmp_path, "4", "HTTPS://Collector.Example:443/Path/")
    assert device.collector == "https://collector.example/Path"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://[::1", "device.collector_url"),
        ("http://collector.example", "device.collector_https"),
        # In xn-- or %XX form it would be another publisher.
        ("https://b\u00fccher.example", "device.collector_ascii"),
    ],
)
def test_urls_that_are_not_plain_https_are_refused(tmp_path, url, code):
    with raises(InputError, code):
        consenting(tmp_path, "4", url)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({"max_epsilon": "0"}, ("device.above_zero", "max_epsilon")),
        ({"max_epsilon": "nan"}, ("device.decimal", "max_epsilon")),
        ({"max_epsilon": True}, ("device.decimal", "max_epsilon")),
        ({"max_epsilon": float("inf")}, ("device.decimal", "max_epsilon")),
        ({"max_delta": 0.0}, ("device.above_zero", "max_delta")),
        # Every part of the text would be an allowed host.
        ({"allowed_hosts": "collector.example"}, ("device.list", "allowed_hosts")),
        ({"signing_keys": Path("key.pem")}, ("device.list", "signing_keys")),
        ({"nodes": ["https://a.example"]}, ("device.node", "nodes")),
        ({"signing_keys": ["no-such-file.pem"]}, "device.cannot_read_key"),
        ({"signing_keys": ["a\0b"]}, "device.cannot_read_key"),
        # A list from a folder without keys would pin none.
        ({"signing_keys": []}, "device.no_keys"),
        ({"folder": "a\0b"}, "device.no_folder"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(tmp_path, rules, code):
    with raises((InputError, LedgerError), code) as caught:
        Device(**{"folder": tmp_path / "device", "max_epsilon": "4", **rules})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "device").exists()


@pytest.mark.attack(4)
def test_service_started_in_another_folder_is_the_same_device(tmp_path, monkeypatch):
    """A service answers again because each working folder has a device of its own, in a folder called ~."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for start in ("desk", "cron"):
        (tmp_path / start).mkdir()
        monkeypatch.chdir(tmp_path / start)
        if start == "desk":
            consenting("~/device", "4").answer(STUDY, YES)
    with pytest.raises(AlreadyAnsweredError):
        consenting(Path("~") / "device", "4").answer(STUDY, YES)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["device"]


@pytest.mark.parametrize("home", [".", "home", ""])
def test_missing_home_rejects_a_folder_in_it(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home)
    for folder in ("~/device", "~", "~nobody-of-this-name/device"):
        with raises(InputError, "device.no_home"):
            folder_of(folder)
    assert folder_of("device") == "device"


def test_open_device_ignores_a_change_of_the_working_folder(tmp_path, monkeypatch):
    """A daemon changes to / after its start."""
    monkeypatch.chdir(tmp_path)
    device = consenting("device", "4")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    device.answer(STUDY, YES)
    assert len(device.ledger.queued()) == 1
    assert os.listdir() == []


@pytest.mark.parametrize(("stated", "kept"), [(4, "4"), (0.1, "0.1"), ("0.1", "0.1")])
def test_budget_may_be_a_number_and_only_gets_smaller(stated, kept, tmp_path):
    device = Device(tmp_path, stated, "http://127.0.0.1:8000")
    assert device.policy.epsilon == Fraction(kept)
    assert device.ledger.budget() == kept
    assert Device(tmp_path, "9").policy.epsilon == Fraction(kept)
    assert Device(tmp_path, "0.01").ledger.budget() == "0.01"
    assert f"max_epsilon={kept}, collector='http://127.0.0.1:8000'" in repr(device)
