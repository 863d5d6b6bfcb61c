"""The code in docs/embed.md does what the text around it says."""

import json
import re

import pytest

from collector.remote.download import fetch_reports
from ldp_client import Device, Direct
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError, TransferError
from ldp_client.files.signing import new_key
from schemas import Report
from tests.collector.conftest import ANSWERS, TOKEN, Server, build_study
from tests.kit.errors import raises
from tests.portable.chromium import run
from tests.portable.embedding_guide import BOARD_LEDGER, code
from tests.portable.platforms import run_micropython


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("collector"))
    started.request("POST", "/v1/studies", build_study().document)
    yield started
    started.kill()


def stored(server):
    return {report.id for report in fetch_reports(server.url, "habits", TOKEN)}


@pytest.mark.slow
def test_phone_example_works(server, tmp_path):
    source = code("python", "device.fetch").replace("https://collector.example", server.url)
    names = {"FOLDER": tmp_path}
    exec(source, names)
    assert names["outcome"].sent == 1
    assert names["report_id"] in stored(server)
    with pytest.raises(AlreadyAnsweredError):
        exec(source, names)


def test_policy_and_withdrawal_examples_work(server, tmp_path):
    names = {"FOLDER": tmp_path, "Device": Device, "PUBLIC_KEY": new_key()[1], "DIGEST": build_study().digest}
    exec(code("python", "signing_keys"), names)
    with raises(RefusedError, "device.not_known_signed"):
        names["device"].answer(build_study(), ANSWERS)
    names["device"] = Device(tmp_path, max_epsilon="4", collector=server.url)
    study = names["device"].fetch("habits")
    names["device"].consent(study)
    report_id = names["device"].answer(study, ANSWERS)
    names["device"].flush()
    assert report_id in stored(server)
    exec(code("python", "device.withdraw"), names)
    assert report_id not in stored(server)


def test_gateway_example_works(server, tmp_path):
    names = {"FOLDER": tmp_path, "COLLECTOR": server.url}
    exec(code("python", "answer_for"), names)
    before = stored(server)
    assert [names["answer_for"](member, build_study(), ANSWERS) for member in ("a", "b")] == [True, True]
    assert len(stored(server) - before) == 2
    assert Device(tmp_path / "a", max_epsilon="4").epsilon_left == 1


def test_gateway_example_sends_waiting_reports_later(server, tmp_path, monkeypatch):
    def down(*_):
        raise TransferError("down")

    names = {"FOLDER": tmp_path, "COLLECTOR": server.url}
    exec(code("python", "answer_for").replace("flush()", "flush(attempts=1)"), names)
    with monkeypatch.context() as patched:
        patched.setattr(Direct, "exchange", down)
        assert names["answer_for"]("c", build_study(), ANSWERS) is False
    (waiting,) = Device(tmp_path / "c", max_epsilon="4").ledger.queued()
    assert names["answer_for"]("c", build_study(), ANSWERS) is True
    assert waiting.report_id in stored(server)


@pytest.mark.slow
def test_browser_example_works(server, browser):
    start, script = code("js", "device.consent").split("\n", 1)
    names, module = re.fullmatch(r'import \{ (.*) \} from "(.*)";', start).groups()
    script = f"{{ const {{ {names} }} = await import(module); {script} return [report.id, report.body]; }}"
    browser.get(f"{server.url}/healthz")
    before = stored(server)
    sent = run(browser, script, module=module)
    assert stored(server) - before == {sent[0]}
    assert Report.from_json(sent[1]).id == sent[0]


MICROCONTROLLER_CHECK = """
import json
from ldp_client.documents.study import Study

study = Study.from_json(open(PLACE + "study.json").read())
answers = json.loads(open(PLACE + "answers.json").read())
stream = [7]

def random(size):
    stream[0] += 1
    return bytes([(stream[0] * 101 + place * 17) % 256 for place in range(size)])

day = {"opens": "2026-06-15", "closes": "2026-06-20"}
dated = Study(dict(study.document, id="dated", **day))
dear = json.loads(json.dumps(dict(study.document, id="dear")))
dear["questions"][0]["mechanism"]["epsilon"] = "1.5"

def refusal(which, *today):
    before = os.listdir()
    try:
        answer_once(which, answers, random, *today)
    except RuntimeError as error:
        assert os.listdir() == before
        return str(error)

print([refusal(dated, *today) for today in ((), ("2026-06-14",), ("2026-06-21",))])
answer_once(study, answers, random)
print(refusal(study))
print(json.dumps(read_ledger()))
print(refusal(Study(dear)))
LEDGER = "other.json"
print([refusal(dated, "2026-06-15"), LEDGER in os.listdir()])
with open(LEDGER, "w") as file:
    file.write("{")
try:
    answer_once(study, answers, random)
except ValueError:
    print("damaged")
"""


def on_this_python(folder, source, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    exec(f"PLACE = {str(folder) + '/'!r}\n{source}", {})
    return capsys.readouterr().out


def on_micropython(folder, source, *_):
    return run_micropython(folder, f"PLACE = '/data/'\n{source}")


@pytest.mark.slow
@pytest.mark.parametrize("platform", [on_this_python, on_micropython])
def test_board_ledger_example_works(platform, tmp_path, capsys, monkeypatch):
    study = build_study()
    (tmp_path / "study.json").write_text(study.to_json())
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS))
    source = BOARD_LEDGER + MICROCONTROLLER_CHECK
    closed, refused, ledger, dear, opened, damaged = platform(
        tmp_path, source, capsys, monkeypatch
    ).splitlines()
    assert closed == str(["not open today, or the day is not known"] * 3)
    assert (refused, dear, damaged) == ("answered before", "above the budget", "damaged")
    assert opened == "[None, True]"
    kept = json.loads(ledger)
    assert (kept["epsilon"], kept["delta"]) == ([3, 1], [0, 1])
    assert kept["spent"] == ["habits/hours", "habits/fruit", "habits/ever"]
    (body,) = kept["outbox"]
    assert Report.from_json(body).digest == study.digest
