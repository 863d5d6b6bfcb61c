"""Wherever the npm package's device keeps its ledger: one contract, a race of processes, kills, damage."""

import json
import sqlite3
import subprocess
import time

import pytest

from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

KINDS = ["memory", "node", "expo"]
NUMBERS = studies.document(studies.NUMBER)
BITS = studies.document(studies.MEMOIZED_BITS, id="bits")
DEAR = studies.document(
    {**studies.NUMBER, "mechanism": {**studies.NUMBER["mechanism"], "epsilon": "19"}}, id="dear"
)
CLEAR = studies.document(
    studies.NUMBER, id="clear", title="T", public=[{"id": "region", "choices": ["north", "south"]}]
)
INDEX = JAVASCRIPT / "index.js"


@pytest.fixture(scope="module")
def node():
    """Runs a program on a node that has node:sqlite."""
    program = npm.newer_node()

    def run(*arguments):
        command = [program, *map(str, arguments)]
        done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_ledger_stores_answers_once_exactly_and_in_order(kind, node, site, tmp_path):
    documents = [NUMBERS, BITS, DEAR, CLEAR]
    site.study = Study(NUMBERS).canonical().decode()
    found = json.loads(
        node("ledgers.mjs", INDEX, kind, tmp_path / "kept.db", site.url, json.dumps(documents))
    )
    assert found["raced"] == ["answered", "done"]
    assert found["same"]
    assert found["unchanged"]
    assert found["again"] == "answered"
    assert found["left"][0] == found["left"][1] < 20
    first, again = found["permanent"]
    assert first == again
    assert first[0][0] == "Uint8Array"
    assert len(first[0]) > 1
    assert found["exact"]
    assert found["budget"] == "budget"
    assert found["thrown"] == found["unwritten"] == "ledger"
    assert found["reports"] == 2
    assert found["most"] == 1
    assert found["states"] == ["sent", "held"]
    assert site.bodies() == found["bodies"]
    assert found["writes"] == 2
    assert (found["withdrawn"], found["gone"]) == (1, True)
    assert found["told"] == ["survey", "bits"]
    # What was promised to be deleted is asked for once.
    assert [method for method, *_ in site.requests].count("DELETE") == 1
    assert (found["clear"], found["agreed"]) == ("done", "queued")


@pytest.mark.parametrize("kind", KINDS)
def test_study_with_public_fields_is_answered_once(kind, node, site, tmp_path):
    """Earlier noised questions are read back to check that they are not sent in clear."""
    region = {"id": "region", "choices": ["north", "south"]}
    document = json.dumps(studies.document(studies.NUMBER, public=[region]))
    answer = ["answer", {"hours": 3, "region": "north"}]
    steps = json.dumps([answer, ["consent"], ["report"]])
    said = json.loads(node("channel.mjs", INDEX, kind, tmp_path / "kept.db", site.url, document, steps))
    assert (said[:2], said[2]["state"]) == (["held", "queued"], "queued")


def test_processes_race_for_one_report_each(tmp_path):
    count = 20
    command = [npm.newer_node(), "ledger_race.mjs", INDEX, tmp_path, str(count), json.dumps(NUMBERS)]
    racing = [subprocess.Popen(command, cwd=npm.FOLDER, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in racing]
    assert [process.returncode for process in racing] == [0, 0]
    for one, other in zip(*(map(json.loads, lines) for lines in said)):
        assert [one[1], other[1]].count("answered") == 1
    assert not list(tmp_path.glob("*-journal"))
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.slow
def test_killed_process_stores_spend_and_report_or_neither(tmp_path):
    """A process that answers on one ledger after the other is killed, later each time.

    First after one answer, in the end after three: how many there are by a clock is the machine's affair.
    """
    told = 0
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [npm.newer_node(), "ledger_race.mjs", INDEX, folder, "10000", json.dumps(NUMBERS)]
        process = subprocess.Popen(command, cwd=npm.FOLDER, stdout=subprocess.PIPE, text=True)
        said = [json.loads(process.stdout.readline()) for _ in range(1 + number // 4)]
        time.sleep(0.007 * number)
        process.kill()
        said += [json.loads(line) for line in process.stdout.read().splitlines()]
        process.wait()
        for file in folder.glob("*.db"):
            check_whole(file, dict(said).get(int(file.stem)))
        told += len(said)
    assert told >= 24


def check_whole(file, said):
    """One spend and one report in it or neither; both where they were told."""
    with sqlite3.connect(file) as database:
        (made,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        text = made and database.execute("SELECT memory FROM ldpkit_ledger").fetchone()[0]
    memory = json.loads(text or '{"spent": [], "reports": []}')
    assert len(memory["spent"]) == len(memory["reports"]) <= 1
    assert said is None or [report["body"] for report in memory["reports"]] == [said]


DAMAGE = {
    "no row": "DELETE FROM ldpkit_ledger",
    "another layout": "UPDATE ldpkit_ledger SET layout = 2",
    "another study": "UPDATE ldpkit_ledger SET memory = replace(memory, 'survey', 'survez')",
    "another cost": """UPDATE ldpkit_ledger SET memory = replace(memory, 'integer 1', 'integer 0')""",
    "no checksum": "UPDATE ldpkit_ledger SET sum = NULL",
    "half a text": "UPDATE ldpkit_ledger SET memory = substr(memory, 1, 40)",
    "no text": "UPDATE ldpkit_ledger SET memory = 'null'",
    "another's table": "DROP TABLE ldpkit_ledger; CREATE TABLE ldpkit_ledger (name TEXT)",
}


def answer_on(node, folder):
    return json.loads(node("ledger_race.mjs", INDEX, folder, 1, json.dumps(NUMBERS)))[1]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_ledger_answers_nothing(damage, node, tmp_path):
    answer_on(node, tmp_path)
    with sqlite3.connect(tmp_path / "0.db") as database:
        database.executescript(DAMAGE[damage])
    before = (tmp_path / "0.db").read_bytes()
    assert refused(tmp_path)
    assert (tmp_path / "0.db").read_bytes() == before


def refused(folder, words=""):
    """Whether it ends with LdpkitError "ledger", in these words."""
    command = [npm.newer_node(), "ledger_race.mjs", INDEX, folder, "1", json.dumps(NUMBERS)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    said = "code: 'ledger'" in done.stderr or done.stdout.strip() == '[0,"ledger"]'
    return said and words in done.stderr


def test_empty_ledger_file_is_rejected(node, tmp_path):
    """SQLite would treat the empty file as a new database."""
    answer_on(node, tmp_path)
    (tmp_path / "0.db").write_bytes(b"")
    assert refused(tmp_path, "ledger: the file is empty: what was answered is lost")
    assert (tmp_path / "0.db").read_bytes() == b""


def test_file_that_is_not_a_database_is_not_changed(tmp_path):
    (tmp_path / "0.db").write_text("no database" * 100)
    assert refused(tmp_path, "ledger: file is not a database")
    assert (tmp_path / "0.db").read_text() == "no database" * 100
    assert refused(tmp_path / "missing", "ledger: ENOENT")


MEMORY = """
const { nodeLedger } = await import("%s/ledgers/node.js");
const { expoLedger } = await import("%s/ledgers/expo.js");
const { standIn } = await import("%s");
for (const path of [":memory:", "", "file:kept?mode=memory", "kept.db", 7]) {
  console.log(await nodeLedger(path).then(() => "kept", ({ code, problem }) => `${code} ${problem}`));
}
for (const path of [":memory:", ""]) {
  try { expoLedger(standIn(path)); } catch ({ code, problem }) { console.log(`${code} ${problem}`); }
}
"""


def test_in_memory_and_relative_ledger_paths_are_rejected(tmp_path):
    """SQLite has names for in-memory databases; a relative path is another file in each folder."""
    stand_in = npm.FOLDER / "expo_stand_in.mjs"
    (tmp_path / "use.mjs").write_text(MEMORY % (JAVASCRIPT, JAVASCRIPT, stand_in))
    command = [npm.newer_node(), "use.mjs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    absolute = "ledger the path must be absolute"
    forgets = "ledger a database in memory forgets what was answered"
    *node, number, expo, nameless = done.stdout.splitlines()
    assert node == [absolute] * 4
    assert number == "ledger ERR_INVALID_ARG_TYPE"
    assert (expo, nameless) == (forgets, forgets)
    assert [path.name for path in tmp_path.iterdir()] == ["use.mjs"]


def test_readable_ledger_file_becomes_private(node, tmp_path):
    answer_on(node, tmp_path)
    (tmp_path / "0.db").chmod(0o644)
    assert answer_on(node, tmp_path) == "answered"
    assert (tmp_path / "0.db").stat().st_mode & 0o777 == 0o600


def test_node_without_sqlite_names_the_required_version(node, tmp_path):
    script = f"""
    const {{ nodeLedger }} = await import("{JAVASCRIPT / "ledgers" / "node.js"}");
    console.log(await nodeLedger("{tmp_path / "kept.db"}").catch(({{ message }}) => message));
    """
    said = node("--no-experimental-sqlite", "--input-type=module", "-e", script)
    assert said.strip() == "ledger: needs node 22.13 or later"
    assert not list(tmp_path.iterdir())
