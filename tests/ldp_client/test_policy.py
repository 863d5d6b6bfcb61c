"""A device's policy rejects requests, and a rejection costs nothing."""

import json
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.device import budget
from ldp_client.documents.errors import (
    AnswerError,
    BudgetError,
    InputError,
    LedgerError,
    RefusedError,
    StudyError,
    TransferError,
)
from ldp_client.files.signing import new_key, sign_study
from ldp_client.mechanisms import mechanism_for
from ldp_client.words.text import say
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

STUDY = Study(studies.document(studies.YES_NO))
YES = {"ever": True}


def version(number, **fields):
    return Study(studies.document(studies.YES_NO, version=number, **fields))


def refuses(device, study, answers, error, code):
    with raises(error, code):
        device.answer(study, answers)
    assert device.ledger.spent() == device.ledger.queued() == []


def test_answer_needs_consent_to_the_same_document(tmp_path):
    device = Device(tmp_path, "4")
    refuses(device, STUDY, YES, RefusedError, "device.no_consent")
    device.consent(version(1, title="Another"))
    refuses(device, STUDY, YES, RefusedError, "device.no_consent")
    Device(tmp_path, "4").consent(STUDY)
    device.answer(STUDY, YES)
    with raises(RefusedError, "device.no_consent"):
        device.answer(version(2), YES)


def test_a_study_above_its_own_cap_is_refused(tmp_path):
    device = consenting(tmp_path, "4", max_epsilon_per_study="1.5")
    pair = Study(studies.document(studies.YES_NO, studies.NUMBER))
    code = ("device.costs", "epsilon 2", "1.5", say("device.budget_of_study"))
    refuses(device, pair, {**YES, "hours": 1}, BudgetError, code)
    device.answer(STUDY, YES)
    grown = Study(studies.document(studies.NUMBER, version=2))
    with raises(BudgetError, "device.costs", "0.5"):
        device.answer(grown, {"hours": 1})
    device.answer(Study(studies.document(studies.NUMBER, id="second")), {"hours": 1})


def test_delta_is_a_budget_too(tmp_path):
    loose = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "delta": "0.5"}}
    answers = {"rating": studies.ANSWERS["rating"]}
    code = ("device.costs", "delta 0.5")
    refuses(consenting(tmp_path, "4"), Study(studies.document(loose)), answers, BudgetError, code)
    device = consenting(tmp_path, "4", max_delta="1e-6")
    device.answer(Study(studies.document(studies.LINEAR)), answers)
    with raises(BudgetError, "device.costs", "delta 1e-06"):
        device.answer(Study(studies.document(studies.LINEAR, id="second")), answers)


def test_cost_of_the_integers_is_charged_if_above_the_stated(tmp_path, monkeypatch):
    """A mechanism whose integers are wrong must not be believed."""
    dear = mechanism_for(Study(studies.document(studies.with_epsilon(studies.YES_NO, "3"))).questions[0])
    monkeypatch.setattr(budget, "mechanisms_of", lambda _study: {"ever": dear})
    device = consenting(tmp_path, "4", max_epsilon_per_study="2")
    refuses(device, version(1, title="Understated"), YES, BudgetError, ("device.costs", "epsilon 3", "2"))


def test_version_older_than_the_answered_one_is_rejected(tmp_path):
    """A version that was only fetched shuts out no lower one."""
    with Server(version(4).canonical()) as server:
        device = consenting(tmp_path, "4", server.url)
        device.fetch("survey")
        server.content = version(3).canonical()
        device.answer(device.fetch("survey"), YES)
        server.content = version(2).canonical()
        with raises(RefusedError, "device.older_version", "2", "3"):
            consenting(tmp_path, "4", server.url).fetch("survey")
        with raises(RefusedError, "device.other_version", "3"):
            device.answer(version(3, title="Another"), YES)
    assert len(device.ledger.queued()) == 1


def test_unknown_mechanism_is_rejected_by_name(tmp_path):
    document = studies.document(studies.YES_NO)
    document["questions"][0]["mechanism"]["name"] = "quantum"
    with Server(json.dumps(document).encode()) as server:
        device = consenting(tmp_path, "4", server.url)
        with raises(RefusedError, "device.cannot_be_answered", "quantum", "unknown"):
            device.fetch("survey")
        server.content = b"{}"
        with raises(StudyError, "study.invalid", field="format"):
            device.fetch("survey")


def test_a_mechanism_that_this_device_lacks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "MECHANISMS", {})
    study = version(1, title="Not cached")
    code = ("device.cannot_be_answered", "'randomized_response'")
    refuses(consenting(tmp_path, "4"), study, YES, RefusedError, code)


@pytest.fixture(scope="module")
def keys():
    return new_key()


def test_pinned_key_requires_signed_studies(tmp_path, keys):
    private, public = keys
    device = consenting(tmp_path, "4", signing_keys=[public])
    refuses(device, STUDY, YES, RefusedError, "device.not_known_signed")
    with raises(RefusedError, "device.not_known_signed"):
        device.accept(STUDY)
    with raises(RefusedError, "device.unsigned"):
        device.accept(sign_study(STUDY, new_key()[0].encode()))
    forged = sign_study(STUDY, private.encode())
    forged.study = version(1, title="Another")
    with raises(RefusedError, "device.wrong_signature"):
        device.accept(forged)
    assert device.accept(sign_study(STUDY, private.encode())) == STUDY
    with pytest.raises(RefusedError):
        consenting(tmp_path, "4", signing_keys=[new_key()[1]]).answer(STUDY, YES)
    consenting(tmp_path, "4", signing_keys=[public]).answer(STUDY, YES)
    with raises(RefusedError, "device.not_known_signed"):
        device.answer(Study(studies.document(studies.NUMBER, version=2)), {"hours": 1})


def test_pinned_key_fetches_the_signed_form(tmp_path, keys):
    private, public = keys
    (tmp_path / "public.pem").write_text(public)
    with Server(sign_study(STUDY, private.encode()).to_json().encode()) as server:
        device = consenting(tmp_path / "d", "4", server.url, signing_keys=[tmp_path / "public.pem"])
        device.answer(device.fetch("survey"), YES)
        assert server.asked("GET") == ["/v1/studies/survey/signed"]
        with raises(TransferError, "device.another_study"):
            device.fetch("other")
        server.content = STUDY.canonical()
        with pytest.raises(StudyError):
            device.fetch("survey")


def test_device_contacts_only_allowed_hosts(tmp_path):
    allowed = ["collector.example", "other.example:8443"]
    for url in ("https://collector.example", "https://collector.example:9/x", "https://other.example:8443"):
        assert consenting(tmp_path, "4", url, allowed_hosts=allowed).collector == url
    for url in ("https://evil.example", "https://other.example", "https://collector.example.evil.example"):
        with raises(RefusedError, "device.host"):
            consenting(tmp_path, "4", url, allowed_hosts=allowed)


def test_hosts_may_be_written_in_any_case(tmp_path):
    allowed = ["Collector.example", "OTHER.example:8443"]
    for url in ("https://collector.example", "https://Other.Example:8443"):
        assert consenting(tmp_path, "4", url, allowed_hosts=allowed).collector == url.lower()


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("HTTPS://Collector.Example:443/", "https://collector.example"),
        ("https://collector.example:8443/Path/", "https://collector.example:8443/Path"),
        ("http://LOCALHOST:80", "http://localhost"),
        ("http://[::1]:5", "http://[::1]:5"),
    ],
)
def test_a_collector_has_one_spelling(tmp_path, url, plain):
    assert consenting(tmp_path, "4", url).collector == plain


def test_allowed_host_may_state_the_default_port(tmp_path):
    allowed = ["collector.example:443"]
    for url in ("https://collector.example", "https://collector.example:443"):
        assert consenting(tmp_path, "4", url, allowed_hosts=allowed).collector == "https://collector.example"
    with pytest.raises(RefusedError):
        consenting(tmp_path, "4", "https://collector.example:444", allowed_hosts=allowed)


@pytest.mark.parametrize(
    "rules",
    [
        {"allowed_hosts": "collector.example"},
        {"signing_keys": "key.pem"},
        {"signing_keys": Path("key.pem")},
    ],
)
def test_text_is_rejected_as_a_list(tmp_path, rules):
    """Every part of the text would be an allowed host."""
    with raises(InputError, "device.list"):
        consenting(tmp_path, "4", "https://example", **rules)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({"collector": 5}, ("device.text", "collector", "int")),
        ({"collector": b"https://example"}, ("device.text", "collector", "bytes")),
        ({"known_digests": [1]}, ("device.texts", "known_digests", "int")),
        ({"known_digests": 7}, ("device.list", "known_digests")),
        ({"allowed_hosts": [None]}, ("device.texts", "allowed_hosts", "NoneType")),
        ({"nodes": [1]}, ("device.texts", "nodes", "int")),
        ({"signing_keys": [0]}, ("device.key_kind", "int")),
        ({"max_delta": 0.1}, ("device.decimal", "max_delta")),
        ({"max_epsilon_per_study": None, "max_epsilon": 4}, ("device.decimal", "max_epsilon ")),
        ({"send_window": "1"}, ("device.send_window", "send_window")),
        ({"require_consent": 0}, ("device.require_consent", "require_consent")),
        ({"folder": b"device"}, ("device.folder", "bytes")),
        ({"folder": None}, ("device.folder", "NoneType")),
        ({"folder": 3}, ("device.folder", "int")),
    ],
)
def test_arguments_of_another_type_are_refused_in_one_line(tmp_path, rules, code):
    with raises(InputError, code) as caught:
        Device(**{"folder": tmp_path / "device", "max_epsilon": "4", **rules})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "device").exists()


@pytest.mark.parametrize("study", [None, STUDY.document, STUDY.to_json(), 3])
def test_object_that_is_not_a_study_is_rejected_in_one_line(tmp_path, study):
    device = Device(tmp_path, "4")
    for ask in (device.accept, device.consent, lambda given: device.answer(given, YES)):
        with raises(InputError, "device.no_study"):
            ask(study)


@pytest.mark.parametrize("answers", [None, [], "ever", 7])
def test_answers_of_the_wrong_type_are_rejected(tmp_path, answers):
    refuses(consenting(tmp_path, "4"), STUDY, answers, AnswerError, ("core.answers", "answers: "))


@pytest.mark.parametrize("window", [-1, float("nan"), float("inf"), 8 * 86_400, "5", None])
def test_send_window_of_zero_or_over_a_week_is_rejected(tmp_path, window):
    with raises(InputError, "device.send_window"):
        consenting(tmp_path, "4", send_window=window)


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example/ http://evil.example",
        "https://good.example/\n",
        "http://collector.example",
        "https://a@b",
        "https://h/?x",
        "https://h/#x",
        "https://[::1",
        "https://h:port",
        "https:///x",
        "https://h\\x",
    ],
)
def test_urls_that_are_not_plain_https_are_refused(tmp_path, url):
    with pytest.raises(InputError):
        consenting(tmp_path, "4", url)


@pytest.mark.parametrize("url", ["https://b\u00fccher.example", "https://h.example/\u00fcb", "http://\u3000"])
def test_non_ascii_collector_address_is_rejected(tmp_path, url):
    """In xn-- or %XX form it would be another publisher; such paths get no request."""
    with raises(InputError, "device.collector_ascii"):
        consenting(tmp_path, "4", url)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_name_that_no_file_can_have_gives_a_clear_error(tmp_path, name):
    with raises(LedgerError, "device.no_folder"):
        Device(f"{tmp_path}/{name}", max_epsilon="2")
    with pytest.raises(InputError):
        Device(tmp_path, max_epsilon="2", signing_keys=[f"{tmp_path}/{name}"])
