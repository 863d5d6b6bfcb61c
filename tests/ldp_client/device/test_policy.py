"""What a device accepts and what that costs, and that each collector's studies are its own."""

import pytest

from ldp_client.device import budget
from ldp_client.documents import errors
from schemas import Report, Study
from schemas.signing import sign_study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, YES, consenting, signing_pair
from tests.ldp_client.issuers import study_of


def version(number, **fields):
    return Study(studies.document(studies.YES_NO, version=number, **fields))


def test_version_older_than_the_answered_one_is_rejected(tmp_path):
    """A version that was only accepted shuts out no lower one."""
    device = consenting(tmp_path, "4", "https://collector.example")
    device.accept(version(4))
    device.answer(device.accept(version(3)), YES)
    with raises(errors.RefusedError, "device.older_version", "2", "3"):
        consenting(tmp_path, "4", "https://collector.example").accept(version(2))
    with raises(errors.RefusedError, "device.other_version", "3"):
        device.answer(version(3, title="Another"), YES)
    assert len(device.ledger.queued()) == 1


@pytest.mark.attack(16)
def test_pinned_key_requires_signed_studies(tmp_path):
    """A collector serves a study that its author did not sign, or another under the author's signature."""
    private, public = signing_pair()
    device = consenting(tmp_path, "4", signing_keys=[public])
    for ask in (device.accept, lambda study: device.answer(study, YES)):
        with raises(errors.RefusedError, "device.not_known_signed"):
            ask(STUDY)
    with raises(errors.RefusedError, "device.unsigned"):
        device.accept(sign_study(STUDY, signing_pair(1)[0].encode()))
    forged = sign_study(STUDY, private.encode())
    forged.study = version(1, title="Another")
    with raises(errors.RefusedError, "device.wrong_signature"):
        device.accept(forged)
    assert device.accept(sign_study(STUDY, private.encode())) == STUDY
    with raises(errors.RefusedError, "device.not_known_signed"):
        consenting(tmp_path, "4", signing_keys=[public]).answer(STUDY, YES)
    device.answer(STUDY, YES)
    with raises(errors.RefusedError, "device.not_known_signed"):
        device.answer(Study(studies.document(studies.NUMBER, version=2)), {"hours": 1})


def test_only_studies_with_known_digests_are_accepted(tmp_path):
    """Promise 16 has other documents of one study."""
    device = consenting(tmp_path, "4", known_digests=[STUDY.digest.upper() + "\n"])
    device.answer(device.accept(STUDY), YES)
    with raises(errors.RefusedError, "device.unpublished", STUDY.digest):
        consenting(tmp_path, "4", known_digests=[]).accept(STUDY)


def test_device_contacts_only_allowed_hosts(tmp_path):
    allowed = ["Collector.example:443", "OTHER.example:8443"]
    for host in ("collector.example", "Collector.example:443", "Other.Example:8443"):
        assert consenting(tmp_path, "4", f"https://{host}", allowed_hosts=allowed).collector
    for host in ("evil.example", "other.example", "collector.example.evil", "collector.example:444"):
        with raises(errors.RefusedError, "device.host"):
            consenting(tmp_path, "4", f"https://{host}", allowed_hosts=allowed)


@pytest.mark.parametrize(
    ("issuer", "error", "code"),
    [
        ("https://issuer.example", errors.RefusedError, ("device.host", "issuer.example")),
        ("http://issuer.example", errors.UsageError, "device.collector_https"),
        ("http://127.0.0.1:8100", errors.RefusedError, "device.place_here"),
        ("https://collector.example:443/tickets", errors.RefusedError, "device.issuer_is_collector"),
    ],
)
def test_issuer_that_the_device_may_not_use_costs_nothing(tmp_path, issuer, error, code):
    """A study built for a trial at 127.0.0.1 and published elsewhere would never get a report."""
    collector = "https://collector.example"
    device = consenting(tmp_path, "8", collector, allowed_hosts=["collector.example"])
    with raises(error, code):
        device.answer(study_of(issuer), YES, "CODE")
    assert device.epsilon_left == 8


KNOWN, SQUATTER = "https://institute.example", "https://squatter.example"


def wave(number):
    mechanism = {**studies.MEMOIZED["mechanism"], "epsilon": "16", "instantaneous_epsilon": "15.9"}
    return Study(studies.document({**studies.MEMOIZED, "mechanism": mechanism}, version=number))


@pytest.mark.attack(16)
def test_squatted_high_version_does_not_block_the_known_study(tmp_path):
    """Another collector publishes a known id with the highest version, to block the known study."""
    squatter = consenting(tmp_path, "40", SQUATTER)
    squatter.answer(squatter.accept(version(1_000_000)), YES)
    twin = version(1_000_000, title="Known")
    device = consenting(tmp_path, "40", KNOWN)
    device.accept(twin)
    with raises(errors.RefusedError, "device.other_version"):
        squatter.accept(twin)
    with raises(errors.BudgetError, "device.costs"):
        consenting(tmp_path, "1.5", KNOWN).answer(STUDY, YES)
    device = consenting(tmp_path, "40", KNOWN, max_epsilon_per_study="1", raise_budget=True)
    device.answer(device.accept(version(2)), YES)
    assert device.epsilon_left == 38


@pytest.mark.attack(11)
def test_withdrawal_and_ticket_cover_only_one_collector(tmp_path):
    """Another collector under the same id gets a person's ticket, or withdraws their report."""
    known, other = (consenting(tmp_path, "40", url) for url in (KNOWN, SQUATTER))
    other.answer(STUDY, YES)
    with raises(errors.InputError, "device.unknown_study"):
        known.withdraw("survey")
    mine = known.answer(STUDY, YES)
    known.give_ticket(STUDY.id, "word")
    assert {item.report_id for item in known.ledger.queued() if item.ticket} == {mine}
    other.withdraw("survey")
    assert [item.report_id for item in known.ledger.queued()] == [mine]


@pytest.mark.attack(4)
@pytest.mark.parametrize("later", [KNOWN, SQUATTER, "https://moved.example"])
def test_permanent_answer_is_drawn_once_for_a_collector_whatever_the_app_states(tmp_path, later):
    """An app answers without a collector, or forgets where it was, so that noise is drawn again."""
    consenting(tmp_path, "60").answer(wave(1), {"habit": "yes"})
    consenting(tmp_path, "60", KNOWN).answer(wave(2), {"habit": "no"})
    moved = consenting(tmp_path, "60", "https://moved.example", formerly=[KNOWN])
    moved.answer(wave(3), {"habit": "no"})
    again = consenting(tmp_path, "60", later)
    again.answer(wave(4), {"habit": "no"})
    reports = [(item.origin, Report.from_json(item.body).payloads["habit"]) for item in again.ledger.queued()]
    for origin in (later, "https://moved.example"):
        assert len({payload for owner, payload in reports if owner == origin}) == 1
    assert again.epsilon_left == 60 - 16 * (1 + (later != "https://moved.example"))


def test_answer_without_collector_belongs_to_the_first_one_named(tmp_path):
    consenting(tmp_path, "40").answer(version(2), YES)
    known, other = consenting(tmp_path, "40", KNOWN), consenting(tmp_path, "40", SQUATTER)
    with pytest.raises(errors.AlreadyAnsweredError):
        known.answer(version(3), YES)
    with raises(errors.RefusedError, "device.older_version"):
        known.accept(version(1))
    other.answer(version(3), YES)
    # Its report would go to a collector that has an answer already.
    with raises(errors.RefusedError, "device.name_collector", KNOWN):
        consenting(tmp_path, "40").answer(version(4), YES)


@pytest.mark.usefixtures("device")
def test_report_is_sent_to_the_address_that_the_collector_moved_to(tmp_path, server, other):
    assert consenting(tmp_path, "4", other.url, formerly=[server.url]).flush().sent == 1
    assert (len(server.asked("PUT")), len(other.asked("PUT"))) == (0, 1)


def refuses(device, study, answers, error, code):
    with raises(error, code):
        device.answer(study, answers)
    assert device.ledger.spent() == device.ledger.queued() == []


def test_a_study_above_its_own_cap_is_refused(tmp_path):
    device = consenting(tmp_path, "4", max_epsilon_per_study="1.5")
    pair = Study(studies.document(studies.YES_NO, studies.NUMBER))
    refuses(device, pair, {**YES, "hours": 1}, errors.BudgetError, ("device.costs", "epsilon 2", "1.5"))
    device.answer(STUDY, YES)
    grown = Study(studies.document(studies.NUMBER, version=2))
    with raises(errors.BudgetError, "device.costs", "0.5"):
        device.answer(grown, {"hours": 1})
    device.answer(Study(studies.document(studies.NUMBER, id="second")), {"hours": 1})


def test_delta_is_a_budget_too(tmp_path):
    loose = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "delta": "0.5"}}
    answers = {"rating": studies.ANSWERS["rating"]}
    code = ("device.costs", "delta 0.5")
    refuses(consenting(tmp_path, "4"), Study(studies.document(loose)), answers, errors.BudgetError, code)
    device = consenting(tmp_path, "4", max_delta="1e-6")
    device.answer(Study(studies.document(studies.LINEAR)), answers)
    with raises(errors.BudgetError, "device.costs", "delta 1e-06"):
        device.answer(Study(studies.document(studies.LINEAR, id="second")), answers)


@pytest.mark.attack(2)
def test_cost_of_the_integers_is_charged_if_above_the_stated(tmp_path, monkeypatch):
    """A mechanism draws with integers that cost more than its study states."""
    dear = studies.mechanism_of(studies.with_epsilon(studies.YES_NO, "3"))
    monkeypatch.setattr(budget, "mechanisms_of", lambda _study: {"ever": dear})
    device = consenting(tmp_path, "4", max_epsilon_per_study="2")
    study = Study(studies.document(studies.YES_NO, title="Understated"))
    refuses(device, study, YES, errors.BudgetError, ("device.costs", "epsilon 3", "2"))
