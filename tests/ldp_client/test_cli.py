"""The command line: exit codes, one clear line for bad input, help without the extras."""

import argparse
import json
import re
import shlex
import subprocess
import sys
from math import exp
from pathlib import Path

import pytest

from ldp_client.documents import errors
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.explain import describe, odds, odds_of
from ldp_client.files.batch import perturb_file
from ldp_client.files.signing import new_key, sign_study
from ldpkit import cli
from ldpkit.cli.device import split_settings
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server
from tests.ldp_client.issuers import channel_of
from tests.secure_sum.conftest import build_study as secure_sum_study

ROOT = Path(__file__).parents[2]


def run(*arguments, **options):
    command = [sys.executable, "-m", "ldpkit.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "study.json"
    path.write_text(json.dumps(studies.document()))
    return path


def test_study_check_states_the_true_epsilon_of_every_question(study_file, capsys):
    assert cli.main(["check", str(study_file)]) == 0
    shown = capsys.readouterr().out
    for question in studies.ALL:
        assert f"{question['id']}:" in shown
    assert "true epsilon 0.9999999992" in shown
    assert "epsilon 7, delta 2e-06 (their sum)" in shown
    assert "2.72 times" in shown
    assert "at most 73.2 % sure" in shown


def test_study_check_prints_the_priors_that_devices_ignore(capsys):
    path = ROOT / "tests" / "golden" / "studies" / "with-priors.json"
    assert cli.main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    for line in (
        "p ~ dirichlet(concentration [3 numbers])",
        "mean ~ student_t(degrees_of_freedom 4, loc 30, scale 5)",
        "feature_sd[age] ~ gamma(shape 2, rate 0.5)",
    ):
        assert re.search(rf"^prior of [a-z0-9_-]+: {re.escape(line)}$", shown, re.MULTILINE)
    assert "prior" not in "\n".join(describe(Study.from_json(path.read_bytes())))


def test_study_check_prints_the_owner_and_missing_fields(tmp_path, capsys):
    path = tmp_path / "study.json"
    path.write_text(json.dumps(studies.document(studies.YES_NO, **{**studies.ASKER, "closes": "2999-01-31"})))
    assert cli.main(["check", str(path)]) == 0
    shown = capsys.readouterr()
    for line in ("asked by: One clinic", "contact: study@example.org", "deleted 365 days after 2999-01-31"):
        assert line in shown.out
    assert "does not state" not in shown.err
    path.write_text(json.dumps(studies.document(studies.YES_NO, owner="One clinic")))
    assert cli.main(["check", str(path)]) == 0
    assert "does not state contact, ethics, retention:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["check", "none.json"], 3, "cannot read none.json"),
        (["perturb", "none.json", "a", "--out", "b"], 3, "cannot read none.json"),
        (["fit", "none.json", "a", "--out", "b"], 3, "cannot read none.json"),
        (["summarize", "none.json", "a", "--out", "b"], 3, "cannot read none.json"),
        (["answer", "nonsense"], 2, "not of the form"),
        (["demo", "--n", "0"], 2, "--n"),
        (["demo", "--epsilon", "-1"], 2, "epsilon"),
        (["export", "x", "--out", "y", "--token", "t", "--collector", "ftp://h"], 2, "http"),
        (["export", "x", "--out", "y", "--token", "€"], 2, "ASCII"),
        (
            ["export", "x", "--out", "y", "--token", "t", "--collector", "http://127.0.0.1:1"],
            5,
            "127.0.0.1:1",
        ),
    ],
)
def test_bad_input_prints_one_line_and_sets_the_exit_code(
    tmp_path, monkeypatch, capsys, arguments, code, says
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("collector.remote.client.backoff", lambda _failed: 0)
    assert cli.main(arguments) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert error.startswith("ldpkit: ")
    assert list(tmp_path.iterdir()) == []


GOOD = json.dumps(studies.document(studies.NUMBER), indent=0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            GOOD.replace('"epsilon": "1"', '"epsilon": "0"'),
            "questions[0].mechanism.epsilon: 0 is out",
        ),
        (
            GOOD.replace('"bounds"', '"bound"'),
            "questions[0].bound: unknown field; known are ask, bounds,",
        ),
        (GOOD.replace('"0",', '"0"'), "line 12, column 1: Expecting ',' delimiter"),
    ],
)
def test_a_bad_study_names_file_place_and_problem(tmp_path, capsys, text, says):
    path = tmp_path / "my.json"
    path.write_text(text)
    assert cli.main(["check", str(path)]) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"ldpkit: {path}: study: ")
    assert says in error


def test_signed_study_given_as_a_study_is_named(tmp_path, capsys):
    private, _ = new_key()
    signed = sign_study(Study(studies.document(studies.YES_NO)), private.encode())
    (tmp_path / "signed.json").write_text(signed.to_json())
    assert cli.main(["check", str(tmp_path / "signed.json")]) == 3
    assert "signed.json: is a signed study, for devices: give" in capsys.readouterr().err


def test_perturb_rejects_a_study_that_needs_tokens(tmp_path, capsys):
    channel = channel_of("https://issuer.example")
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO, channel=channel)))
    (tmp_path / "answers.ndjson").write_text('{"ever": true}\n')
    files = [str(tmp_path / name) for name in ("study.json", "answers.ndjson", "reports.ndjson")]
    before = sorted(tmp_path.iterdir())
    assert cli.main(["perturb", *files[:2], "--out", files[2]]) == 3
    assert (
        "No collector accepts reports on this study from a file. No noise was drawn"
        in capsys.readouterr().err
    )
    with raises(RefusedError, "files.tokenless"):
        perturb_file(Study.from_json(Path(files[0]).read_text()), *files[1:])
    assert sorted(tmp_path.iterdir()) == before


def test_perturb_writes_reports(tmp_path, study_file):
    answers = tmp_path / "answers.ndjson"
    answers.write_text(json.dumps(studies.ANSWERS) + "\n")
    done = run("perturb", study_file, answers, "--out", tmp_path / "reports.ndjson")
    assert done.returncode == 0
    assert "1 report in" in done.stdout
    assert (tmp_path / "reports.ndjson").exists()


def test_a_mistyped_setting_is_not_repeated():
    for setting in ("ever:yes", "yes", "yes=ever"):
        with pytest.raises(InputError) as caught:
            split_settings(Study(studies.document(studies.YES_NO)), [setting])
        assert "yes" not in str(caught.value)


def test_the_sentence_about_odds_mentions_delta():
    assert "added probability of 1 in 1,000,000." in odds(1.0, 1e-6)
    assert "added probability of 1 in 1e+30." in odds(1.0, 1e-30)
    assert "added" not in odds(1.0)


def test_upper_bounds_in_odds_sentence_are_not_rounded_down():
    """The sentence is true for every epsilon and delta, and at most a percent too high."""
    for step in range(1, 640):
        epsilon, delta = step / 10, 10 ** (-step / 30)
        factor = exp(epsilon)
        times, sure, exception = re.findall(
            r"[0-9.,]+(?:e[+-]?[0-9]+)?(?= times| %|\.$)", odds(epsilon, delta)
        )
        assert factor <= float(times.replace(",", "")) <= 1.1 * factor
        assert 1 - 1e-9 <= float(sure) * (1 + factor) / (100 * factor) <= 1.01
        assert delta * (1 - 1e-9) <= 1 / float(exception.replace(",", "")) <= 2 * delta


def test_odds_sentence_names_the_visible_data():
    """For a data holder the sentence names records; for a secure sum it never names a report."""
    golden = Path(__file__).parent.parent / "golden" / "studies"
    holder = Study.from_json((golden / "data-holders.json").read_bytes())
    summed = secure_sum_study("ever")
    person = Study(studies.document(studies.YES_NO))
    said = [odds_of(study, 1.0) for study in (person, holder, summed)]
    words = ("Whatever was answered, any report", "record of the table holds, any report", "any sum over the")
    assert [word in sentence for word, sentence in zip(words, said)] == [True] * 3
    assert "report" not in said[2]
    assert all("at most 73.2 % sure" in sentence for sentence in said)


def test_documented_exit_codes_match_the_error_classes(capsys):
    table = re.findall(r"^\| ([0-9, ]+) \|", (ROOT / "docs" / "commands.md").read_text(), flags=re.M)
    named = {int(code) for row in table for code in row.split(",")}
    assert named == {0, *(code for name, code in vars(errors).items() if name.startswith("EXIT_"))}
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    (line,) = re.findall(r"Exit codes:[^.]*", " ".join(capsys.readouterr().out.split()))
    assert {int(code) for code in re.findall(r"[0-9]+", line)} == named
    raised = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    assert {kind.__name__ for kind in raised if kind.exit_code == errors.EXIT_OTHER} == {
        "LdpkitError",
        "LedgerError",
        "MissingExtraError",
        "RandomnessError",
    }


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
from ldpkit.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocked", "arguments", "extra"),
    [
        (["jax", "numpy", "numpyro"], ["fit", "STUDY", "r", "--out", "d"], "ldpkit[inference]"),
        (["jax", "numpy", "numpyro"], ["summarize", "STUDY", "r", "--out", "d"], "ldpkit[tables]"),
        (["pyarrow"], ["summarize", "STUDY", "r.parquet", "--out", "d"], "ldpkit[tables]"),
        (["fsspec"], ["summarize", "STUDY", "s3://a/b", "--out", "d"], "ldpkit[tables]"),
        (["s3fs"], ["summarize", "STUDY", "s3://a/b", "--out", "d"], "ldpkit[s3]"),
        (["adlfs"], ["summarize", "STUDY", "az://a/*.parquet", "--out", "d"], "ldpkit[az]"),
        (["flask", "sqlalchemy", "granian"], ["serve"], "ldpkit[collector]"),
        (["statsmodels"], ["demo"], "ldpkit[demo]"),
        (["cryptography"], ["keygen", "--out", "key.pem"], "ldp-client[signing]"),
        (["cryptography"], ["node", "keygen", "--out", "node.key"], "ldpkit[collector]"),
    ],
)
def test_a_missing_extra_is_named(study_file, tmp_path, blocked, arguments, extra):
    arguments = [str(study_file) if argument == "STUDY" else argument for argument in arguments]
    command = [sys.executable, "-c", BLOCKED.format(blocked=blocked), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert extra in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--workers", "two"], "--workers: must be a whole number of at least 1, is two"),
        (["serve", "--threads", "0"], "--threads: must be a whole number of at least 1, is 0"),
        (["plan", "s.json", "--out", "p", "--n", "1e3"], "--n: must be whole numbers, as in"),
    ],
)
def test_an_option_that_is_no_number_is_named(capsys, arguments, says):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert says in capsys.readouterr().err


def test_help_lists_every_command():
    done = run("--help")
    assert done.returncode == 0
    for command in ("check", "perturb", "answer", "withdraw", "serve", "export", "summarize", "fit", "demo"):
        assert command in done.stdout


def leaves(parser):
    """Every command that does something, below a parser."""
    groups = [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
    return [leaf for group in groups for child in group.choices.values() for leaf in leaves(child)] or [
        parser
    ]


@pytest.mark.parametrize("command", leaves(cli.build_parser()), ids=lambda command: command.prog)
def test_every_command_has_a_description_and_an_example(command):
    assert command.description
    (example,) = re.findall("^  ldpkit (.*)$", command.epilog, flags=re.M)
    parsed = cli.build_parser().parse_args(shlex.split(example))
    assert parsed.run is command.get_default("run")


def test_answer_without_consent_is_rejected(tmp_path):
    study = Study(studies.document(studies.YES_NO))
    with Server(study.canonical()) as server:
        url = f"{server.url}/v1/studies/survey"
        done = run(
            "answer",
            "--max-epsilon",
            "8",
            url,
            "--set",
            "ever=yes",
            "--folder",
            tmp_path,
            stdin=subprocess.DEVNULL,
        )
        assert (done.returncode, "pass --yes" in done.stderr) == (2, True)
        assert server.asked("PUT") == []


@pytest.mark.parametrize(("typed", "sent"), [("y", 1), ("yes", 1), ("n", 0), ("", 0)])
def test_the_person_is_shown_the_study_and_asked(tmp_path, monkeypatch, capsys, typed, sent):
    study = Study(studies.document(studies.YES_NO))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _question: typed)
    with Server(study.canonical()) as server:
        url = f"{server.url}/v1/studies/survey"
        cli.main(["answer", "--max-epsilon", "8", url, "--set", "ever=yes", "--folder", str(tmp_path)])
        assert len(server.asked("PUT")) == sent
    assert "2.72 times" in capsys.readouterr().out


def test_study_text_cannot_imitate_the_commands_output():
    """The text cannot move the cursor of the terminal on which a person decides."""
    spoken = "Tea?\n  oue: true epsilon 0.01\x1b[8m\x9b8m\u202e"
    lines = describe(Study(studies.document({**studies.YES_NO, "text": spoken}, title=spoken)))
    assert len(lines) == len(describe(Study(studies.document(studies.YES_NO))))
    assert all(line.isprintable() for line in lines)


def test_answer_with_a_key_needs_its_signature(tmp_path):
    study = Study(studies.document(studies.YES_NO))
    private, public = new_key()
    (tmp_path / "public.pem").write_text(public)
    with Server(sign_study(study, new_key()[0].encode()).to_json().encode()) as server:
        url = f"{server.url}/v1/studies/survey"
        answer = [
            "answer",
            "--max-epsilon",
            "8",
            url,
            "--set",
            "ever=yes",
            "--yes",
            "--folder",
            str(tmp_path / "device"),
        ]
        answer += ["--trusted-signer", str(tmp_path / "public.pem")]
        assert cli.main(answer) == 3
        server.content = sign_study(study, private.encode()).to_json().encode()
        assert cli.main(answer) == 0
        assert len(server.asked("PUT")) == 1


def test_a_short_option_that_a_command_does_not_have_is_named(capsys):
    with pytest.raises(SystemExit):
        cli.main(["keygen", "--out", "key.pem", "-q", "-x"])
    told = capsys.readouterr().err
    assert "not understood: -q; quote" in told
    # It may be of an answer.
    assert "-x" not in told


def test_an_answer_that_lost_its_quotes_is_not_repeated(capsys):
    with pytest.raises(SystemExit):
        cli.main(
            ["answer", "http://127.0.0.1:1/v1/studies/s", "--set", "fruit=red", "apple", "--colour=green"]
        )
    told = capsys.readouterr().err
    assert "not understood: --colour; quote values that have spaces" in told
    assert "apple" not in told
    assert "green" not in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["anser"], "there is no anser: did you mean answer?"),
        (["chek", "study.json"], "there is no chek: did you mean check?"),
        (
            ["perturb", "s.json", "a.csv", "--out=r", "--missing-as-refuzal"],
            "--missing-as-refuzal (did you mean --missing-as-refusal?)",
        ),
        (["check", "s.json", "--recrods", "3"], "not understood: --recrods (did you mean --records?)"),
        # A beginning is not the option: `--missing` would have made refusals of blanks.
        (["perturb", "s.json", "a.csv", "--out", "r.ndjson", "--missing"], "not understood: --missing"),
        (["fit", "s.json", "a.ndjson", "b.ndjson", "--out", "p"], "fit takes one file of reports; join them"),
        (
            ["fit", "s.json", "a.json", "b.json", "--out", "p"],
            "A secure sum has one total, which is fitted by",
        ),
        (["fi", "s.json"], "there is no fi: did you mean fit?"),
        (["xyz"], "invalid choice"),
    ],
)
def test_mistyped_command_or_option_gets_a_suggestion(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("end", ["sleep?version=1", "sleep/", "a/b", ""])
def test_study_address_with_a_further_path_is_rejected(capsys, end):
    assert cli.main(["answer", f"http://127.0.0.1:1/v1/studies/{end}", "--yes"]) == 2
    assert "is not of the form" in capsys.readouterr().err


def test_unsigned_study_is_reported_by_name(tmp_path, capsys):
    with Server() as server:
        server.statuses = [404]
        _, public = new_key()
        arguments = [
            "answer",
            "--max-epsilon",
            "8",
            f"{server.url}/v1/studies/s",
            "--folder",
            str(tmp_path),
            "--trusted-signer",
            public,
        ]
        assert cli.main(arguments) == 5
    assert "and was it published with a signature?" in capsys.readouterr().err
