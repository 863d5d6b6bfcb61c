"""Algorithm 2 end to end: marginal moments, thresholds, and a regression of projected records."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from inference.projection import thresholds
from inference.projection.second_study import (
    field_spread,
    rest_of_budget,
    second_keys,
    second_study,
    with_tokens,
)
from inference.projection.thresholds import (
    MOST_BIAS,
    Auxiliary,
    Projection,
    Projections,
    data_sets,
    find_thresholds,
)
from ldp_client import Device, mechanism_for
from ldp_client.documents.errors import InputError, UsageError
from ldpkit.cli import main
from schemas import Study
from tests.kit.errors import raises
from tests.kit.secure_sum import CODE, TOKEN, build_study, flush
from tests.ldp_client.issuers import Key, channel_of, keys, other_key

FEATURES, RESPONSE = {"age": ("-10", "10"), "weight": ("0", "200")}, ("-80", "80")
DEVICES = 12
SPREADS = {"age": (1.0, 0.5), "weight": (80.0, 10.0), "rate": (5.0, 3.0)}


def first_study(epsilon="0.2", delta="2e-7", share="0.2", nodes=None, devices=1000):
    document = build_study("spread", devices=devices, max_faulty=devices // 20).document
    if nodes:
        document = {**document, "protocol": {**document["protocol"], "nodes": nodes}}
    stated = {**document["questions"][0]["mechanism"], "epsilon": epsilon, "delta": delta, "share": share}
    question = {
        **document["questions"][0],
        "features": [{"id": name, "bounds": list(bounds)} for name, bounds in FEATURES.items()],
        "response": {"id": "rate", "bounds": list(RESPONSE)},
        "mechanism": stated,
    }
    return Study({**document, "questions": [question]})


def write_posterior(study, folder, spreads=SPREADS, uncertainty=0.0):
    rows = {}
    for name, (mean, sd) in spreads.items():
        rows[f"mean[{name}]"] = {"mean": mean, "sd": uncertainty}
        rows[f"sd[{name}]"] = {"mean": sd, "sd": uncertainty}
    folder.mkdir(exist_ok=True)
    text = json.dumps({"study_digest": study.digest, "questions": {"spread": {"parameters": rows}}})
    (folder / "posterior.json").write_text(text)
    return rows


def central_noise(sigma=4.22):
    """Noise of a secure sum at ε = 1, δ = 1e-6: σ/Δ times the sensitivity of svec(vvᵀ), √8 R²."""
    return lambda norm: sigma * sqrt(8) * norm**2


def expected_error(d, n, noise, projection):
    """The error of a given projection on the search's auxiliary data."""
    feature, response, norm = projection
    tried = Projections(feature, [response], norm)
    return np.mean([data.errors(tried, [noise(norm)]) for data in data_sets(d, n, 0)])


class TestThresholds:
    @pytest.mark.slow
    def test_projection_beats_bounds_that_are_too_wide(self):
        """Bounds of 3 sd made 5 times too wide, one round with the whole ε, against 80 % of it."""
        d, n, wide = 5, 2000, 5
        found = find_thresholds(d, n, central_noise(4.22 / 0.8))
        assumed = expected_error(d, n, central_noise(), Projection(3.0 * wide, 3.0 * wide, sqrt(d)))
        assert found.error < assumed / 4

    @pytest.mark.slow
    def test_projection_alone_is_a_small_part_of_the_error(self, monkeypatch):
        """Intervals that ignore projection are therefore nearly right; each side is tested alone."""
        found = find_thresholds(3, 20_000, central_noise())
        feature, response, norm = found.projection
        silent = lambda _norm: 0.0  # noqa: E731
        least = expected_error(3, 20_000, silent, Projection(50.0, 50.0, 50.0 * sqrt(3)))
        for side in (Projection(feature, 50.0, norm), Projection(50.0, response, 50.0 * sqrt(3))):
            assert expected_error(3, 20_000, silent, side) - least <= MOST_BIAS * found.error
        monkeypatch.setattr(thresholds, "MOST_BIAS", np.inf)
        greedy = find_thresholds(3, 20_000, central_noise())
        assert greedy.error < found.error
        assert greedy.projection.response < response

    def test_estimate_without_noise_and_projection_is_least_squares(self):
        data = Auxiliary.draw(3, 5000, np.random.default_rng(2))
        found = data.estimates(Projections(50.0, [50.0], 50.0), [0.0])[0, :, 0]
        design = np.column_stack([np.ones(5000), data.x])
        assert found == pytest.approx(np.linalg.lstsq(design, data.y, rcond=None)[0], abs=1e-6)

    def test_projection_shrinks_slopes_as_theory_says(self):
        """d = 1, only x clipped at c: E[clip(x) x] / E[clip(x)²] by Stein's lemma is P(|x| < c) over that."""
        x = np.random.default_rng(4).normal(size=(10**6, 1))
        factor = 0.6827 / np.mean(np.clip(x, -1, 1) ** 2)
        data = Auxiliary(x, 0.8 * x[:, 0], np.array([0.8]), 10**6, np.zeros((3, 3)))
        found = data.estimates(Projections(1.0, [50.0], 1.0), [0.0])[0, 1, 0]
        assert found == pytest.approx(factor * 0.8, rel=0.005)


class TestSecondStudy:
    @pytest.mark.slow
    def test_second_study_spends_the_rest_within_assumed_bounds(self, tmp_path):
        study = first_study()
        write_posterior(study, tmp_path)
        second, (found,) = second_study(study, tmp_path, "again")
        question = second.questions[0]
        assert (second.id, second.version, second.protocol.devices) == ("again", 1, 1000)
        assert (str(question.mechanism.epsilon), str(question.mechanism.delta)) == ("0.8", "0.0000008")
        feature, response, norm = found.thresholds.projection
        for field, threshold in zip((*question.features, question.response), (feature, feature, response)):
            mean, sd = SPREADS[field.id]
            low, high = (float(bound) for bound in field.bounds)
            assert (low, high) == pytest.approx((mean - threshold * sd, mean + threshold * sd), abs=sd / 50)
        assert float(question.norm) == pytest.approx(norm, rel=0.02)
        mechanism_for(question)

    @pytest.mark.parametrize("share", ["0.3", "0.999"])
    def test_the_rest_is_rounded_down(self, share):
        found = rest_of_budget(first_study("0.1", "1e-8", share).questions[0])
        left = (1 - Fraction(share)) / Fraction(share)
        for value, spent in zip(found, ("0.1", "1e-8")):
            exact = left * Fraction(spent)
            assert exact * (1 - Fraction(1, 10**11)) <= Fraction(value) <= exact

    def test_an_uncertain_posterior_widens_the_bounds(self, tmp_path):
        study = first_study()
        rows = write_posterior(study, tmp_path, uncertainty=3.0)
        mean, sd = field_spread(study.questions[0].features[0], rows)
        assert (mean, sd) == (1.0, pytest.approx(sqrt(3.5**2 + 9)))

    def test_a_posterior_of_another_study_is_refused(self, tmp_path):
        write_posterior(first_study(), tmp_path)
        with raises(InputError, "derive.posterior_of_other_study"):
            second_study(first_study("0.3"), tmp_path, "again")
        (tmp_path / "posterior.json").write_text("{}")
        with raises(InputError, "derive.no_posterior", "spread"):
            second_study(first_study(), tmp_path, "again")
        with raises(InputError, "derive.no_marginals_question", "marginals"):
            second_study(build_study("rating"), tmp_path, "again")


GUIDE = Path(__file__).parents[3] / "docs" / "secure-sum.md"


def guide_blocks(language):
    """Return the blocks of the guide's section on two rounds."""
    section = GUIDE.read_text().partition("## A regression in two rounds")[2].partition("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```", section, flags=re.M | re.S)
    return [text for shown_as, text in found if shown_as == language]


def guide_study(network):
    """The guide's first study, for these nodes and few people: with much more ε."""
    (text,) = guide_blocks("json")
    document = json.loads(text)
    nodes = [node.address for node in network.nodes]
    document["protocol"] |= {"devices": DEVICES, "max_faulty": 2, "nodes": nodes}
    document["questions"][0]["mechanism"] |= {"epsilon": "10", "delta": "1e-4"}
    document["channel"] = channel_of(network.issuer.url)
    return Study(document)


def widths(study):
    """Return the widths of the bounds of all fields together."""
    fields = (*study.questions[0].features, study.questions[0].response)
    return sum(float(field.bounds[1]) - float(field.bounds[0]) for field in fields)


def people(random):
    """So many records; bounds are five to ten times too wide."""
    hours, commute = random.normal(38, 6, DEVICES), random.normal(35, 12, DEVICES)
    pressure = 120 + 2 * (hours - 38) + 0.1 * (commute - 35) + random.normal(0, 4, DEVICES)
    columns = {"hours": hours, "commute": commute, "pressure": pressure}
    return [dict(zip(columns, map(float, row))) for row in zip(*columns.values())]


def answer_round(network, study, records, folder):
    """Every device fetches, consents, answers and sends; one ledger for both rounds."""
    for node in network.nodes:
        assert node.publish(study).status_code == 201
    collector = network.nodes[0].address.partition("#")[0]
    trusted = [node.address for node in network.nodes]
    for number, record in enumerate(records):
        device = Device(folder / str(number), "64", collector, max_delta="0.01", nodes=trusted)
        fetched = device.fetch(study.id)
        device.consent(fetched)
        device.answer(fetched, {"work": record}, CODE)
        assert flush(device).sent == 1


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_the_guides_two_rounds_against_real_nodes(network, tmp_path, monkeypatch, capsys):
    """Run the guide's study and commands, with faster approximate fits."""
    monkeypatch.chdir(tmp_path)
    study = guide_study(network)
    assert study.protocol is not None
    monkeypatch.setenv("LDPKIT_TOKEN", " ".join([TOKEN] * len(study.protocol.nodes)))
    Path("first.json").write_text(study.to_json())
    records = people(np.random.default_rng(8))
    tokens = {"issuer": network.issuer.url, "keys": [{"key": keys()[1].text}]}
    Path("tickets.json").write_text(json.dumps({"tickets": tokens}))
    for line in guide_blocks("")[0].splitlines():
        command = line.partition("ldpkit ")[2].split()
        if command[:2] == ["node", "close"]:
            study = Study.from_json(Path(command[2]).read_text())
            answer_round(network, study, records, Path("devices"))
            command.append("--yes")
            network.issuer.answers = [other_key] * DEVICES
        if command[0] == "fit":
            command += ["--method", "gaussian_approx"]
        assert main(command) in (0, 4)
    assert "work: epsilon 40, delta 0.0004 are left" in capsys.readouterr().out
    found = json.loads(Path("posterior", "posterior.json").read_text())["questions"]["work"]
    slope = found["parameters"]["coefficient[hours]"]
    assert (study.id, found["n"]) == ("strain-2", DEVICES)
    # So few people learn little, and their prior pulls the slope to 0; how sure fits may be is tested above.
    assert abs(slope["mean"] - 2) < 8 * slope["sd"] < 24
    assert widths(study) < widths(Study.from_json(Path("first.json").read_text()))


def test_a_device_answers_both_rounds_within_one_budget(network, tmp_path):
    """The ledger adds them up: 0.2 and 0.8 of a cap of 1, and not one more."""
    plain = first_study(nodes=[node.address for node in network.nodes], devices=20)
    study = Study({**plain.document, "channel": channel_of("https://issuer.example")})
    write_posterior(study, tmp_path)
    second, _ = second_study(study, tmp_path, "second")
    record = {"age": 1.0, "weight": 80.0, "rate": 5.0}
    device = Device(
        tmp_path / "device",
        "1",
        max_delta="1e-6",
        require_consent=False,
        nodes=study.document["protocol"]["nodes"],
    )
    for one in (study, second):
        device.answer(one, {"spread": record}, CODE)
    assert sum(spent.epsilon for spent in device.ledger.spent()) == 1


def test_second_study_states_new_token_keys(tmp_path):
    """Tokens of the first study's keys are spent, and no report of the second would leave."""
    channel = channel_of("https://issuer.example")
    tokened, path = Study({**first_study().document, "channel": channel}), tmp_path / "tickets.json"
    for content, code in (
        ({"tickets": channel["tickets"]}, "derive.ticket_keys_of_first_study"),
        ({"tickets": {**channel["tickets"], "keys": []}}, "derive.ticket_keys_invalid"),
        ([], "derive.wrong_ticket_file"),
    ):
        path.write_text(json.dumps(content))
        with raises(InputError, code):
            second_keys(tokened, "again", str(path))
    block = {**channel["tickets"], "keys": [{"key": Key().text}]}
    path.write_text(json.dumps({"tickets": block}))
    found = with_tokens(tokened, second_keys(tokened, "again", str(path)))
    assert found.document["channel"] == {**channel, "tickets": block}
    with raises(UsageError, "derive.no_tickets"):
        second_keys(first_study(), "again", str(path))
