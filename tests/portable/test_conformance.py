"""The conformance kit: ports pass, including one written from docs/payloads.md; faults are detected."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

from conformance.run import DRAWN, judged
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.device import http, requests
from ldp_client.documents.catalogue import MECHANISMS
from schemas import Study
from tests import studies
from tests.portable import vector_shares
from tests.portable.platforms import REPOSITORY

PAGE = (REPOSITORY / "docs" / "payloads.md").read_text("utf-8")

PORT = REPOSITORY / "tests" / "portable" / "port_from_page.py"
PARTS = [PORT, PORT.with_name("port_noise.py"), PORT.with_name("port_numbers.py")]
# What browsers leave to devices with a library of keys.
OF_SUMS = {"summed_gaussian", "pieces", "marginals"}
# {fault: what it changes in the port, and of what the kit then fails}
FAULTS = {
    "another digest": (("sort_keys=True", "sort_keys=False"), "digest"),
    "no rejection": (("if word < WORD - WORD % limit:", "if True:"), "hadamard"),
    "noise of a float": (
        ("noise(law, 1, random)[0]])\n    share", "round(noise(law, 1, random)[0], -3)])\n    share"),
        "laplace",
    ),
    "no clipping": (
        ("length = max(isqrt(max(square, 1) - 1) + 1, radius)", "length = radius"),
        "gaussian_record",
    ),
    "a refusal that reads less": (
        (
            "told = random.truth_or_other(int(answer is None), 2,",
            "told = int(answer is None) or random.truth_or_other(0, 2,",
        ),
        "refusable_numbers",
    ),
    "big-endian words": (('to_bytes(8, "little")', 'to_bytes(8, "big")'), "pieces"),
}


def names(cases):
    return {case.split()[0] for case in cases}


@pytest.mark.slow
def test_documented_laws_pass_every_vector():
    found = judged([sys.executable, str(PORT)])
    assert (found["failed"], found["unsupported"]) == ([], [])
    assert names(found["passed"]) == {*DRAWN, *OF_SUMS, "id", "digest"}


def test_port_imports_nothing_from_the_library():
    """Otherwise the port would not test the page."""
    for part in PARTS:
        assert not re.search(r"^(?:from|import) (?:ldp_client|schemas|tests)", part.read_text(), re.MULTILINE)


def test_page_covers_every_name_a_study_may_use():
    named = set(re.findall(r"`(\w+)`", PAGE))
    of_people = {name for name in MECHANISMS if not name.startswith("table_")}
    assert of_people - named == set()
    assert not re.search(r"ldp_client/\S+\.py", PAGE)


def test_conformance_shares_match_the_device():
    assert vector_shares.FILE.read_text("utf-8") == vector_shares.shares_file()


def test_page_states_the_sending_rules_of_devices():
    """Problem types, numbers for sending and the worked example."""
    for name in (*requests.FINAL, *requests.STORED, *requests.WITHDRAWN, "ticket-needed"):
        assert f"`{name}`" in PAGE, name
    for said in (
        f"once {requests.GRACE_DAYS} days have passed since the study's last day",
        f"{http.DEADLINE_SECONDS:g} seconds at most",
        f"up to {http.FIRST_DELAY_SECONDS:g} s · 2ⁱ, {http.LONGEST_DELAY_SECONDS:g} s at most",
        "5xx, " + ", ".join(map(str, requests.TEMPORARY)),
    ):
        assert said in " ".join(PAGE.split())
    threshold, drawn, payload = re.search(
        r"has T = (\d+)\. .*?`([0-9a-f ]+)` gives the payload `(\w+)`", PAGE, re.S
    ).groups()
    mechanism = mechanism_for(Study(studies.document(studies.YES_NO)).questions[0])
    assert mechanism.threshold == int(threshold)
    assert mechanism.randomise(
        mechanism.quantise("no"), NotForRealAnswers(BytesIO(bytes.fromhex(drawn)).read)
    ) == bytes.fromhex(payload)


@pytest.mark.slow
def test_javascript_port_passes_the_kit():
    found = judged(["node", str(REPOSITORY / "conformance" / "javascript.mjs")])
    assert found["failed"] == []
    assert names(found["unsupported"]) == OF_SUMS


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """{fault: of what the kit fails}; all ports at once, as each has to make its tables."""
    folder = tmp_path_factory.mktemp("ports")
    with ThreadPoolExecutor(2) as pool:
        return dict(
            zip(
                FAULTS,
                pool.map(lambda fault: failed(folder / fault.replace(" ", "-"), *FAULTS[fault]), FAULTS),
                strict=True,
            )
        )


def failed(folder, change, mechanism):
    """Return the cases of this mechanism that a port with this change fails."""
    folder.mkdir()
    wrong, found = change, 0
    for part in PARTS:
        text = part.read_text()
        found += text.count(wrong[0])
        (folder / part.name).write_text(text.replace(*wrong))
    assert found == 1, (wrong[0], found)
    return names(judged([sys.executable, str(folder / PORT.name)], {mechanism})["failed"])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_port_is_detected(faulty, fault):
    assert faulty[fault] == {FAULTS[fault][1]}


def test_port_that_stops_is_detected():
    with pytest.raises(SystemExit, match="after 0 of"):
        judged([sys.executable, "-c", ""])
