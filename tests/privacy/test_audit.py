"""The audit finds planted faults and passes the real mechanisms."""

import json

import pytest
from scipy import stats

from ldp_client import mechanisms
from ldp_client.audit.claims import delta_of, epsilon_of, largest_distance, lower_share, upper_share
from ldp_client.audit.findings import table
from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius
from ldpkit import cli
from schemas import Rational, Study
from tests import studies
from tests.privacy import faults
from tests.privacy.checks.auditing import audit_mechanism

SAMPLES = 8000
WIDE = {**studies.CHOICE, "choices": [str(number) for number in range(16)]}
ONE_OF_MANY = {**WIDE, "mechanism": {"name": "randomized_response", "epsilon": "2"}}
NINE = {**ONE_OF_MANY, "choices": [str(number) for number in range(9)]}


def audit(question, kind=None, samples=None):
    """Records need fewer reports: their noise is judged by all their numbers together."""
    samples = samples or (SAMPLES // 4 if question["ask"] == "record" else SAMPLES)
    asked = Study(studies.document(question)).questions[0]
    kind = kind or mechanisms.MECHANISMS[asked.mechanism.name]
    return audit_mechanism(kind(asked), asked, samples)


def failures(found):
    return {check.name for check in found.checks if not check.passed}


def asked_by(name):
    return next(question for question in studies.NEWER if question["mechanism"]["name"] == name)


REAL = [
    *studies.ALL,
    *studies.NEWER,
    {**WIDE, "choices": {"count": 1000000}, "mechanism": {"name": "hadamard", "epsilon": "1"}},
    WIDE,
    ONE_OF_MANY,
    studies.with_epsilon(studies.NUMBER, "0.01"),
    studies.with_epsilon(WIDE, "6"),
    {**studies.LINEAR, "norm": "0.3"},
]


def coins_of(question):
    """How many coins decide a report: of a permanent answer and its reports two, of numbers none."""
    if question["mechanism"]["name"] == "sampled_products":
        return 1
    if question["ask"] == "number" or question.get("response", {}).get("bounds"):
        return 0
    return {"memoized": 2, "gaussian_statistics": 0}.get(question["mechanism"]["name"], 1)


@pytest.mark.slow
@pytest.mark.parametrize("question", REAL, ids=lambda q: f"{q['id']}-{q['mechanism']['epsilon']}")
def test_the_real_mechanisms_pass(question):
    found = audit(question)
    assert failures(found) == set()
    coins = [check.made for check in found.checks if "the sampler's coin" in check.name]
    assert coins == [True] * coins_of(question)
    assert found.bound <= found.epsilon


def test_coin_that_is_not_found_is_reported_as_unchecked():
    found = audit(studies.YES_NO, faults.FloatCoin)
    assert [check.name for check in found.checks if not check.made] == ["the sampler's coin is exactly p"]
    assert any("not checked: the sampler's coin" in line for line in table([found]))


@pytest.mark.slow
@pytest.mark.parametrize("question", [studies.NUMBER, studies.CHOICE, studies.ONE_OF, studies.YES_NO])
def test_the_bound_comes_close_to_the_truth(question):
    """An audit that never finds anything would pass everything."""
    # Of half as many reports the bound of a set is, once in 1,400 audits, below this one.
    assert audit(question, samples=2 * SAMPLES).bound > 0.6


PLANTED = [
    (studies.PRODUCTS, faults.OffByOneProducts, {"the sampler's coin is exactly p"}),
    (studies.PRODUCTS, faults.LeakyProducts, {"bound from whole payloads"}),
    (studies.PRODUCTS, faults.UnroundedProducts, {"bound from bytes"}),
    (studies.NUMBER, faults.QuietLaplace, {"bound from numbers", "noise is not too small"}),
    (studies.LINEAR, faults.QuietGaussian, {"noise is not too small"}),
    (studies.NUMBER, faults.CoarseLaplace, {"bound from lowest bits"}),
    (studies.NUMBER, faults.NumpyLaplace, {"bound from floats", "repeats on the same random bytes"}),
    (studies.NUMBER, faults.InversionLaplace, {"bound from floats"}),
    (studies.NUMBER, faults.RepeatedLaplace, {"noise is independent"}),
    (studies.LINEAR, faults.SharedNoise, {"noise is independent"}),
    (
        studies.NUMBER,
        faults.UnclippedLaplace,
        {"bound from numbers", "no two answers are further apart than the noise hides"},
    ),
    (studies.LINEAR, faults.UnclippedGaussian, {"no two answers are further apart than the noise hides"}),
    (
        WIDE,
        faults.RepeatedBytes,
        {"bound from pairs of bits", "no output of one answer is impossible for another"},
    ),
    (WIDE, faults.RoundedUp, {"within the study's epsilon and delta"}),
    (WIDE, faults.RoundedUpSilently, {"epsilon is not below the logarithm of the odds"}),
    (WIDE, faults.OffByOneOue, {"the sampler's coin is exactly q"}),
    (WIDE, faults.OffByOneLastBit, {"the sampler's coin is exactly q"}),
    (WIDE, faults.NoiselessBit, {"the sampler's coin is exactly q"}),
    (ONE_OF_MANY, faults.OffByOneLastChoice, {"the sampler's coin is exactly p"}),
    (NINE, faults.OppositeChoices, {"bound from whole payloads"}),
    (ONE_OF_MANY, faults.WrongOdds, {"odds, p and q are one law"}),
    (ONE_OF_MANY, faults.OffByOneResponse, {"the sampler's coin is exactly p"}),
    (asked_by("olh"), faults.OffByOneOlh, {"the sampler's coin is exactly p"}),
    (asked_by("hadamard"), faults.OffByOneHadamard, {"the sampler's coin is exactly p"}),
    (studies.YES_NO_RECORD, faults.OffByOneRecord, {"response: the sampler's coin is exactly p"}),
    (studies.MEMOIZED, faults.OffByOneAgain, {"one report: the sampler's coin is exactly p"}),
    (studies.MEMOIZED_BITS, faults.OffByOneFlips, {"one report: the sampler's coin is exactly q"}),
    (
        studies.YES_NO_RECORD,
        faults.SpentTwice,
        {
            "features: no two answers are further apart than the noise hides",
            "response: within the study's epsilon and delta",
        },
    ),
    (studies.YES_NO_RECORD, faults.ResponseSpentTwice, {"response: the sampler's coin is exactly p"}),
    (studies.YES_NO_RECORD, faults.SharedCoin, {"whole report: bound from features with the response"}),
    (ONE_OF_MANY, faults.OftenTruthful, {"bound from supported choices"}),
    (studies.MEMOIZED, faults.Forgetful, {"8 reports: bound from votes of all reports"}),
    (WIDE, faults.SeldomTruthful, {"supported choices follow the stated law"}),
    (ONE_OF_MANY, faults.ThriftyResponse, {"takes as many random bytes for either answer"}),
]


# Checks that look at the code's own numbers: how many reports are drawn does not matter to them.
WITHOUT_REPORTS = (
    "the sampler's coin is exactly p",
    "the sampler's coin is exactly q",
    "within the study's epsilon and delta",
    "epsilon is not below the logarithm of the odds",
    "odds, p and q are one law",
    "no two answers are further apart than the noise hides",
)


@pytest.mark.slow
@pytest.mark.parametrize(("question", "kind", "expected"), PLANTED, ids=lambda v: getattr(v, "__name__", ""))
def test_planted_faults_are_found(question, kind, expected):
    # Of fewer reports chance hides these once in some hundred audits.
    many = {faults.QuietLaplace: 3 * SAMPLES, faults.SharedCoin: SAMPLES // 2}
    few = SAMPLES // 8 if all(name.endswith(WITHOUT_REPORTS) for name in expected) else None
    found = audit(question, kind, samples=many.get(kind, few))
    assert not found.passed
    assert expected <= failures(found)


@pytest.mark.slow
def test_correlated_bits_cannot_be_seen_in_single_bytes():
    """This makes the planted fault one of the joint distribution."""
    assert "bound from bytes" not in failures(audit(WIDE, faults.RepeatedBytes))


@pytest.mark.slow
def test_audit_command_prints_verdict_and_exits_by_it(tmp_path, capsys, monkeypatch):
    path, out = tmp_path / "study.json", tmp_path / "audit.json"
    path.write_text(json.dumps(studies.document(studies.NUMBER, studies.YES_NO)))
    command = ["audit", str(path), "--samples", "1000", "--out", str(out)]
    assert cli.main(command) == 0
    written = json.loads(out.read_text())
    assert [entry["question"] for entry in written] == ["hours", "ever"]
    assert all(entry["passed"] for entry in written)
    assert "passed" in capsys.readouterr().out

    monkeypatch.setitem(mechanisms.MECHANISMS, "laplace", faults.UnclippedLaplace)
    monkeypatch.setattr(mechanisms, "_built", {})
    assert cli.main([*command, "--question", "hours"]) == 4
    assert "FAIL" in capsys.readouterr().out
    assert json.loads(out.read_text())[0]["passed"] is False
    assert cli.main([*command, "--question", "ever"]) == 0


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--samples", "10"], 2, "--samples"),
        (["--question", "none"], 3, "--question"),
        (["--samples", "1000", "--out", "no/such/folder"], 3, "cannot write no/such/folder"),
    ],
)
def test_bad_options_are_one_line(tmp_path, capsys, options, code, says):
    path = tmp_path / "study.json"
    path.write_text(json.dumps(studies.document(studies.YES_NO)))
    assert cli.main(["audit", str(path), *options]) == code
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("false_alarm", [0.05, 1e-9])
@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (10, 10), (7, 1000), (9000, 20000)])
def test_clopper_pearson_bounds_are_those_of_the_beta_quantiles(successes, trials, false_alarm):
    low, high = lower_share(successes, trials, false_alarm), upper_share(successes, trials, false_alarm)
    expected_low = stats.beta.ppf(false_alarm, successes, trials - successes + 1) if successes else 0.0
    expected_high = (
        stats.beta.isf(false_alarm, successes + 1, trials - successes) if successes < trials else 1.0
    )
    assert low == pytest.approx(expected_low, rel=1e-6)
    assert high == pytest.approx(expected_high, rel=1e-6)
    assert low <= expected_low * (1 + 1e-12)
    assert high >= expected_high * (1 - 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-4"), ("1", "1e-6"), ("8", "1e-9")])
def test_the_audits_gaussian_curve_agrees_with_the_calibration(epsilon, delta):
    """The audit uses floats and erfc, and the calibration interval arithmetic on integers."""
    radius = gaussian_radius(Rational.parse(epsilon), Rational.parse(delta), 9)
    allowed = largest_distance(float(epsilon), float(delta))
    assert radius == pytest.approx(allowed * 2**NOISE_BITS, abs=1.5)
    assert delta_of(allowed, float(epsilon)) == pytest.approx(float(delta), rel=1e-9)
    assert epsilon_of(allowed, float(delta)) == pytest.approx(float(epsilon), rel=1e-9)
