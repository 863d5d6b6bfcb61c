"""The audit finds planted faults and passes the real mechanisms. tests/mutants lists faults of its own."""

import json
import struct
from fractions import Fraction

import pytest
from scipy import stats

from ldp_client import mechanisms
from ldp_client.core import strips
from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius, log_ratio, truth_threshold
from ldp_client.mechanisms.base import Privacy, pack_signed
from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS, GaussianStatistics
from ldp_client.mechanisms.number import Laplace, RefusableNumber
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity
from ldp_client.mechanisms.tables.statistics import TableStatisticsDdplr
from ldp_client.mechanisms.unary import Oue
from ldpkit import cli
from ldpkit.auditing.auditing import audit_mechanism
from ldpkit.auditing.exact import delta_of, epsilon_of, largest_distance, lower_share, upper_share
from ldpkit.cli import analysing
from tests import studies
from tests.statistics import replace_system_bytes, seeded


class CoarseLaplace(Laplace):
    """Noise on a grid four times coarser than the answers'."""

    def randomise(self, quantised, random):
        return pack_signed([quantised + strips.laplace(1, random)[0] // 4 * 4])


class UnclippedLaplace(Laplace):
    """Answers beyond the bounds stay there."""

    def quantise(self, answer):
        if answer is None:
            return self.levels // 2
        low, high = float(self.bounds[0]), float(self.bounds[1])
        return round((answer - low) / (high - low) * self.levels)


class SharedNoise(GaussianStatistics):
    """One normal for all coordinates: each is noisy, their differences are not."""

    def randomise(self, quantised, random):
        noise = strips.normal(1, random)[0]
        sums = []
        for i, j in self.coordinates:
            multiplier = self.diagonal if i == j else self.off_diagonal
            sums.append((quantised[i] * quantised[j] * multiplier >> MULTIPLIER_BITS) + noise)
        return pack_signed(sums)


class RepeatedBytes(Oue):
    """Every byte has the same noise (Cobalt): each bit by itself is right. For whole bytes of choices."""

    def randomise(self, quantised, random):
        noise = 0
        for place, fresh in enumerate(random(self.bits)):
            noise = noise | fresh if self.threshold >> place & 1 else noise & fresh
        report = bytearray([noise] * self.payload_size)
        own = 1 << quantised % 8
        report[quantised // 8] = (noise & ~own) | (random(1)[0] & own)
        return bytes(report)


class RoundedUp(Oue):
    """The threshold is rounded down, so ε is 1e-10 too large, and said so."""

    def __init__(self, question):
        super().__init__(question)
        self.threshold -= 1
        self._state_odds((1 << self.bits) - self.threshold, self.threshold)
        self.q = Fraction(self.threshold, 1 << self.bits)


class RoundedUpSilently(RoundedUp):
    """The same, and what it says is the ε of the study."""

    def __init__(self, question):
        super().__init__(question)
        self.privacy = Privacy(question.mechanism.epsilon)


class OppositeChoices(RandomizedResponse):
    """Choices 1 and 8 of nine change other choices in opposite directions: each is near choice 0."""

    def randomise(self, quantised, random):
        (reported,) = super().randomise(quantised, random)
        moved = {1: {2: 5, 3: 6, 4: 7}, 8: {5: 2, 6: 3, 7: 4}}.get(quantised, {})
        return bytes([moved.get(reported, reported) if random(1)[0] < 218 else reported])


class SeldomTruthful(Oue):
    """Sets the true bit less often than it states: private, but estimates from it would be wrong."""

    def randomise(self, quantised, random):
        report = super().randomise(quantised, random)
        keep = random(1)[0] < 192
        mask = ((1 << 8 * self.payload_size) - 1) ^ (0 if keep else 1 << quantised)
        return (int.from_bytes(report, "little") & mask).to_bytes(self.payload_size, "little")


class WrongOdds(RandomizedResponse):
    """Odds and ε of a weaker law than p and q have."""

    def __init__(self, question):
        super().__init__(question)
        self.odds = (self.odds[0] - 1, self.odds[1])
        self.privacy = Privacy(log_ratio(*self.odds))


class SpentTwice(GaussianRecord):
    """Features and response each spend all of ε."""

    def __init__(self, question):
        super().__init__(question)
        stated = question.mechanism
        self.distance = gaussian_radius(stated.epsilon, stated.delta, len(self.features))
        self._set_grid(question, self.distance)
        self.threshold = truth_threshold(stated.epsilon, 2)
        self.odds = (self.threshold, (1 << 32) - self.threshold)
        self.p, self.q = (Fraction(weight, 1 << 32) for weight in self.odds)


class SharedCoin(GaussianRecord):
    """The response's coin is the sign of the first feature's noise: each by itself is private."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        noise = struct.unpack_from(">i", noise_bytes := noisy[:4])[0] - quantised[0]
        return noise_bytes + noisy[4:-1] + bytes([quantised[-1] ^ (noise < 0)])


class RawRefusal(RandomizedResponse):
    """Who refuses is reported as one who does."""

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return noisy if quantised < self.choices - 1 else quantised.to_bytes(self.payload_size, "big")


class LeakyProducts(SampledProducts):
    """The product that is drawn depends on the answer."""

    def randomise(self, quantised, random):
        place, sign = divmod(super().randomise(quantised, random)[0], 2)
        return bytes([2 * (place if quantised[1] > 0 else place // 2) + sign])


class RawNumber(RefusableNumber):
    """Who refuses sends no noise."""

    def __init__(self, question):
        super().__init__(question, Laplace(question))

    def randomise(self, quantised, random):
        noisy = super().randomise(quantised, random)
        return pack_signed([self.middle]) + noisy[-1:] if quantised[1] else noisy


SAMPLES = 8000


@pytest.fixture(autouse=True)
def seeded_system(request, monkeypatch):
    """An audit judges what mechanisms draw by themselves: here it finds a fault always or never."""
    replace_system_bytes(monkeypatch, seeded(request.node.name).source)


# For checks that look at the code's own numbers.
FEW = 60
WIDE = {**studies.CHOICE, "choices": [str(number) for number in range(16)]}
NINE = {
    **WIDE,
    "choices": [str(number) for number in range(9)],
    "mechanism": {"name": "randomized_response", "epsilon": "2"},
}
OFFERED = {**studies.YES_NO, "refusal": True}
REFUSABLE = {**studies.with_epsilon(studies.NUMBER, "2"), "refusal": {"share": "0.5"}}


def audit(question, kind=None, samples=FEW):
    asked = studies.question_of(question)
    kind = kind or mechanisms.mechanism_for
    return audit_mechanism(kind(asked), asked, samples)


def failures(found):
    return {check.name for check in found.checks if not check.passed}


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [*studies.ALL, *studies.NEWER, *studies.TABLES, OFFERED, REFUSABLE, studies.with_epsilon(WIDE, "6")],
    ids=lambda question: f"{question['id']}-{question['mechanism']['epsilon']}",
)
def test_the_real_mechanisms_pass(question):
    found = audit(question, samples=2000)
    assert failures(found) == set()
    assert found.bound <= found.epsilon


@pytest.mark.slow
def test_the_bound_comes_close_to_the_truth():
    """An audit that never finds anything would pass everything."""
    assert audit(studies.CHOICE, samples=2 * SAMPLES).bound > 0.6


FAR = "no two answers are further apart than the noise hides"
ODDS = "epsilon is not below the logarithm of the odds"
EXACT = [
    (studies.NUMBER, UnclippedLaplace, FAR),
    (WIDE, RoundedUp, "within the study's epsilon and delta"),
    (WIDE, RoundedUpSilently, ODDS),
    (NINE, WrongOdds, "odds, p and q are one law"),
    (studies.YES_NO_RECORD, SpentTwice, FAR),
]


@pytest.mark.attack(2)
@pytest.mark.parametrize(("question", "kind", "expected"), EXACT, ids=lambda v: getattr(v, "__name__", ""))
def test_a_fault_of_the_codes_own_numbers_is_found(question, kind, expected):
    """State an ε that the code's coins, bounds or odds exceed, by as little as one in 2**32."""
    assert expected in failures(audit(question, kind))


SAMPLED = [
    (studies.NUMBER, CoarseLaplace, "bound from lowest bits"),
    (studies.LINEAR, SharedNoise, "bound from numbers"),
    (studies.PRODUCTS, LeakyProducts, "bound from whole payloads"),
    (WIDE, RepeatedBytes, "bound from pairs of bits"),
    (NINE, OppositeChoices, "bound from whole payloads"),
    (studies.YES_NO_RECORD, SharedCoin, "bound from numbers with the last byte"),
    (WIDE, SeldomTruthful, "supported choices follow the stated law"),
    (OFFERED, RawRefusal, "bound from supported choices"),
    (REFUSABLE, RawNumber, "bound from numbers with the last byte"),
]


@pytest.mark.slow
@pytest.mark.attack(1)
@pytest.mark.parametrize(("question", "kind", "expected"), SAMPLED, ids=lambda v: getattr(v, "__name__", ""))
def test_a_fault_that_only_reports_show_is_found(question, kind, expected):
    """Use noise that is shared, repeated, left out or on a coarse grid, with sound stated numbers."""
    samples = SAMPLES // 4 if question["ask"] == "record" else SAMPLES
    assert expected in failures(audit(question, kind, samples))


@pytest.mark.slow
def test_budget_that_fourth_moments_do_not_share_is_detected():
    mechanism = {**studies.LAPLACE_TABLE["mechanism"], "fourth_moments": True}
    question = studies.question_of(studies.LAPLACE_TABLE, mechanism=mechanism)
    own = mechanisms.mechanism_for(question)
    assert FAR not in failures(audit_mechanism(own, question, FEW))
    own.multipliers = [2 * multiplier for multiplier in own.multipliers]
    assert FAR in failures(audit_mechanism(own, question, FEW))


@pytest.mark.parametrize("average", [1, 5])
def test_too_small_published_sensitivities_are_detected(average):
    """Plants DDPLR's Δ for the default table, and with averaging the correct Δ of single records."""

    class Published(TableStatisticsDdplr):
        def _multipliers(self, room):
            right = ddplr_sensitivity(self.radius, 1 << 20, self.intercept, self.average)
            single = ddplr_sensitivity(self.radius, 1 << 20, self.intercept, 1)
            taken = 2**0.5 * (1 << 40) if average == 1 else average * single
            return [int(multiplier * right / taken) for multiplier in super()._multipliers(room)]

    options = {"intercept": False, **({"average": average} if average > 1 else {})}
    mechanism = {**studies.DDPLR_TABLE["mechanism"], **options}
    question = studies.question_of(studies.DDPLR_TABLE, mechanism=mechanism)
    assert FAR in failures(audit_mechanism(Published(question), question, FEW))


def test_audit_command_prints_verdict_and_exits_by_it(tmp_path, capsys, monkeypatch):
    path, out = tmp_path / "study.json", tmp_path / "audit.json"
    path.write_text(json.dumps(studies.document(studies.NUMBER, studies.YES_NO)))
    command = ["audit", str(path)]
    monkeypatch.setattr(analysing, "SAMPLES", 300)
    assert cli.main([*command, "--out", str(out)]) == 0
    written = json.loads(out.read_text())
    assert [entry["question"] for entry in written] == ["hours", "ever"]
    assert all(entry["passed"] for entry in written)
    assert "passed" in capsys.readouterr().out

    monkeypatch.setitem(mechanisms.MECHANISMS, "laplace", UnclippedLaplace)
    monkeypatch.setattr(mechanisms, "_built", {})
    assert cli.main([*command, "--question", "hours", "--out", str(tmp_path / "failed.json")]) == 4
    assert "FAIL" in capsys.readouterr().out
    assert json.loads((tmp_path / "failed.json").read_text())[0]["passed"] is False
    assert cli.main([*command, "--question", "ever"]) == 0
    assert cli.main([*command, "--question", "none"]) == 3


@pytest.mark.parametrize("false_alarm", [0.05, 1e-9])
@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (10, 10), (9000, 20000)])
def test_bounds_of_shares_are_outside_the_exact_ones(successes, trials, false_alarm):
    """Compare with Clopper & Pearson (1934), by the beta quantiles."""
    low, high = lower_share(successes, trials, false_alarm), upper_share(successes, trials, false_alarm)
    exact_low = stats.beta.ppf(false_alarm, successes, trials - successes + 1) if successes else 0.0
    exact_high = stats.beta.isf(false_alarm, successes + 1, trials - successes) if successes < trials else 1.0
    assert low <= exact_low * (1 + 1e-12)
    assert high >= exact_high * (1 - 1e-12)
    assert high - low <= 1.5 * (exact_high - exact_low)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-4"), ("8", "1e-9")])
def test_the_audits_gaussian_curve_agrees_with_the_calibration(epsilon, delta):
    """The audit uses floats and erfc, and the calibration interval arithmetic on integers."""
    radius = gaussian_radius(Fraction(epsilon), Fraction(delta), 9)
    allowed = largest_distance(float(epsilon), float(delta))
    assert radius == pytest.approx(allowed * 2**NOISE_BITS, abs=1.5)
    assert delta_of(allowed, float(epsilon)) == pytest.approx(float(delta), rel=1e-9)
    assert epsilon_of(allowed, float(delta)) == pytest.approx(float(epsilon), rel=1e-9)
