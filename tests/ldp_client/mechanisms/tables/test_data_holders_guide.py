"""docs/data-holders.md is true: its table is made, its commands run, its constants are those of the code."""

import json
import re
from pathlib import Path

import pytest

from ldp_client import mechanism_for
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity
from ldp_client.mechanisms.tables.statistics import l1_distance
from ldpkit import cli
from schemas import Report, Study

PAGE = (Path(__file__).parents[4] / "docs" / "data-holders.md").read_text()
ROUNDS = PAGE.partition("## In two rounds")[2].partition("\n## ")[0]
HOSPITALS = ("north", "south", "west")
UNTRUSTED = 4


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)
    return found


def commands(text, words):
    return [line.split()[1:] for line in re.findall(f"^ldpkit {words} .*", text, flags=re.M)]


def lines_without_numbers(text):
    return [
        re.sub(r"\s+", " ", re.sub(r"-?\d[\d.]*(e-?\d+)?", "#", line)).strip() for line in text.splitlines()
    ]


@pytest.mark.slow
def test_three_hospitals_reproduce_the_guides_posterior(tmp_path, monkeypatch, capsys):
    """Chance draws the noise: a check that one fit in a thousand fails may speak once, and not twice."""
    one_round = PAGE.replace(ROUNDS, "")
    for attempt in ("first", "second"):
        (tmp_path / attempt).mkdir()
        monkeypatch.chdir(tmp_path / attempt)
        Path("study.json").write_text(block("json"))
        exec(block("python"), {})
        assert [cli.main(command) for command in commands(one_round, "perturb")] == [0] * len(HOSPITALS)
        capsys.readouterr()
        code = cli.main(*commands(one_round, "fit study.json north.ndjson south.ndjson"))
        if code != UNTRUSTED:
            break
    assert code == 0
    printed = lines_without_numbers(capsys.readouterr().out)
    assert [line for line in lines_without_numbers(block("console")) if line not in printed] == []
    entry = json.loads(Path("posterior/posterior.json").read_text())["questions"]["stay"]
    assert entry["n"] == 4000 * len(HOSPITALS)
    for name, truth in {"coefficient[age]": 0.05, "coefficient[severity]": 1.5, "sd": 3}.items():
        found = entry["parameters"][name]
        assert abs(found["mean"] - truth) < 6 * found["sd"] < 1.5 * max(truth, 0.5), name


@pytest.mark.slow
def test_the_guides_two_rounds_end_in_narrower_bounds(tmp_path, monkeypatch, capsys):
    """Run the guide's study and commands with much more ε, as the tables are small."""
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    document = json.loads(block("json"))
    (stated,) = re.findall(r'"mechanism": (\{[^}]*"share"[^}]*\})', ROUNDS)
    document["questions"][0]["mechanism"] = {**json.loads(stated), "epsilon": "4", "delta": "1e-4"}
    Path("first.json").write_text(json.dumps(document))
    for program, *words in map(str.split, re.findall(r"^(?:ldpkit|cat) .*", ROUNDS, flags=re.M)):
        if program == "cat":
            *parts, _, target = words
            assert len(parts) == len(HOSPITALS)
            Path(target).write_bytes(b"".join(Path(part).read_bytes() for part in parts))
        else:
            assert cli.main(words) == 0
    assert "stay: epsilon 16, delta 0.0004 are left" in capsys.readouterr().out
    second = Study.from_json(Path("second.json").read_text())
    assert (second.id, second.respondent) == ("stays-2", "holder")
    low, high = map(float, second.questions[0].response.bounds)
    assert 0 <= low < 12.5 < high < 40
    payload = Report.from_json(Path("north-2.ndjson").read_bytes()).payloads["stay"]
    assert mechanism_for(second.questions[0]).entries(payload)[0] == 4000


def test_constants_in_the_guide_match_the_code():
    unit = 1 << 20

    def ddplr(intercept, average):
        return ddplr_sensitivity(unit, unit, intercept, average) / average / unit**2

    def l1(norm):
        return l1_distance(round(norm * unit), unit, 2, False, 1) / unit**2

    found = [ddplr(False, 1), ddplr(True, 1), ddplr(False, 2), ddplr(False, 10**6), l1(2**0.5), l1(1)]
    assert found == pytest.approx([2.121, 3.162, 2.83, 5.66, 6, 4.67], rel=2e-3)
    for constant in ("2.121", "3.162", "2.83", "5.66", "the truth is 6", "4.67"):
        assert constant in PAGE
