"""Blind tokens and batches of the npm package: vectors, ledgers, answers, withdrawal at each stage."""

import json
import subprocess
import time

import pytest

from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT
from tests.portable.test_ledgers import INDEX, KINDS
from tests.portable.token_issuer import TokenIssuer, keys, token_in
from tests.portable.vector_texts import GOLDEN

ANSWERED = [["answer", {"ever": "yes"}, "CODE"], ["consent"]]
DAY_MS = 86_400_000
REGION = {"id": "region", "choices": ["north", "south"], "source": "invitation"}


def test_rfc_token_vectors_match():
    """RFC 9474 (blind signatures), RFC 9578 (tokens) and RFC 9577 (challenges)."""
    said = npm.node("token_vectors.mjs", JAVASCRIPT / "tokens.js", GOLDEN / "rfc")
    assert json.loads(said) == {"rfc9474": [4, 4], "rfc9578_public": [5, 5], "rfc9577_header": [2, 2]}


@pytest.fixture
def issuer():
    opened = TokenIssuer()
    opened.strata["CODE"] = 0
    yield opened
    opened.close()


@pytest.fixture
def take(issuer, site, tmp_path):
    """Has a device take steps, with a study whose channel is that issuer's: what each gave."""

    def take(*steps, kind="memory", channel=None, **more):
        study = Study(studies.document(studies.YES_NO, channel=channel or issuer.channel(), **more))
        site.study = study.canonical().decode()
        arguments = [INDEX, kind, tmp_path / "kept.db", site.url, site.study, json.dumps(steps)]
        command = [npm.newer_node(), "channel.mjs", *map(str, arguments)]
        done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return take


def check_token(header, study, issuer, key):
    """Check the token and its challenge, with the study alone."""
    return token_in(header, study, issuer.url.split("//")[1], key)


def window(moment_ms, hours=24):
    return int(moment_ms // (hours * 3_600_000))


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_is_asked_for_in_one_window_and_the_report_sent_in_the_next(kind, take, issuer, site):
    """Each step opens the ledger again, and every ledger keeps what the next step needs."""
    begun = time.time() * 1000
    *_, asked, waits, early, due, sent, left = take(
        *ANSWERED, ["flush"], ["report"], ["flush"], ["due"], ["flush"], ["report"], kind=kind
    )
    assert (asked, early, sent) == ("queued", "queued", "sent")
    assert waits["due"] == due
    assert window(due) in (window(begun) + 1, window(begun + 60_000) + 1)
    # The invitation is the issuer's, and no collector's.
    assert [code for code, _ in issuer.asked] == ["CODE"]
    assert (waits["invitation"], waits["reason"], waits["publisher"]) == ("", "", "")
    assert waits["asked"] == {"place": 0}
    assert site.invitations == [None]
    assert site.bodies() == [waits["body"]]
    token = check_token(site.tokens[0], Study(json.loads(site.study)), issuer, keys()[0])
    # What the issuer saw has nothing of it.
    assert not any(token[at : at + 8] in issuer.asked[0][1] for at in range(2, 340))
    assert left["token"] == ""


def test_collector_gets_no_request_before_the_send_time(take, site):
    take(*ANSWERED, ["flush", 5], ["due", -1], ["flush", 5])
    assert (site.requests, site.asked) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
def test_lost_issuer_answer_is_requested_again_unchanged(kind, take, issuer, site):
    issuer.told = ["lost", (503, "busy")]
    *_, lost, _, busy, _, _, sent = take(
        *ANSWERED,
        ["flush"],
        ["report"],
        ["flush"],
        ["report"],
        ["flush"],
        ["due"],
        ["flush"],
        kind=kind,
    )
    assert (lost["reason"], busy["reason"]) == ("issuer unreachable", "issuer problem 503 busy")
    assert lost["asked"] == busy["asked"]
    assert sent == "sent"
    first, second, third = issuer.asked
    assert first == second == third
    assert len(site.tokens) == 1


def test_moments_are_drawn_evenly_in_the_window():
    script = f"""
    const {{ drawDue }} = await import("{JAVASCRIPT / "leaving.js"}");
    const channel = {{ batches: {{ hours: 6 }} }};
    const at = (bytes) => Object.assign(() => Uint8Array.of(...bytes), {{ forTests: true }});
    const width = 6 * 36e5;
    const draws = [[0, 0, 0, 0], [128, 0, 0, 0], [255, 255, 255, 255]];
    const from = (now) => draws.map((bytes) => drawDue(channel, now, at(bytes)));
    console.log(JSON.stringify([from(0), from(width - 1), from(width)].flat()));
    """
    width = 6 * 3_600_000
    expected = [width, width * 3 // 2, 2 * width - 1]
    found = json.loads(npm.node("--input-type=module", "-e", script))
    assert found == expected * 2 + [moment + width for moment in expected]


# Of the issuer's second key.
OTHER = "other"


@pytest.mark.parametrize(
    ("told", "state", "reason"),
    [
        ((403, "invitation-needed"), "uninvited", "issuer problem 403 invitation-needed"),
        ((409, "token-issued"), "uninvited", "issuer problem 409 token-issued"),
        ((422, "token-key-unknown"), "queued", "issuer problem 422 token-key-unknown"),
        ((429, "too-many"), "queued", "issuer problem 429 too-many"),
        # Of no stratum that the study has.
        (
            (409, "token-key-other", {"key_id": OTHER}),
            "queued",
            "issuer problem 409 token-key-other",
        ),
        ((409, "token-key-other", {"key_id": "length"}), "queued", "issuer problem 409 token-key-other"),
        ("forged", "queued", "issuer foreign 200"),
    ],
)
def test_device_recovers_from_every_issuer_answer(told, state, reason, take, issuer, site):
    if told[-1] == {"key_id": OTHER}:
        told = (*told[:2], {"key_id": keys()[1].short_id})
    issuer.told = [told]
    *_, first, why, _, _, _, sent = take(
        *ANSWERED, ["flush"], ["report"], ["invite", "CODE"], ["flush"], ["due"], ["flush"]
    )
    assert (first, why["state"], why["reason"]) == (state, state, reason)
    assert sent == "sent"
    check_token(site.tokens[0], Study(json.loads(site.study)), issuer, keys()[0])


def test_unknown_or_used_code_can_be_replaced(take, issuer):
    issuer.strata["OTHER"] = 0
    issuer.given["CODE"] = (b"", b"")
    *_, used, _, unknown, _, given = take(
        *ANSWERED, ["flush"], ["invite", "NONE"], ["flush"], ["invite", "OTHER"], ["flush"]
    )
    assert (used, unknown, given) == ("uninvited", "uninvited", "queued")
    assert [code for code, _ in issuer.asked] == ["CODE", "NONE", "OTHER"]
    assert len({body for _, body in issuer.asked}) == 1


STRATA = ({"region": "north"}, {"region": "south"})


def test_issuer_corrects_the_stratums_key_once(take, issuer, site):
    issuer.strata["CODE"] = 1
    *_, waits, _, _ = take(
        *ANSWERED,
        ["flush"],
        ["report"],
        ["due"],
        ["flush"],
        channel=issuer.channel(*STRATA),
        public=[REGION],
    )
    assert waits["asked"] == {"place": 1}
    first, second = issuer.asked
    assert [body[2] for _, body in (first, second)] == [key.short_id for key in keys()]
    assert first[1][3:] != second[1][3:]
    check_token(site.tokens[0], Study(json.loads(site.study)), issuer, keys()[1])
    assert "region" not in site.bodies()[0]


def test_repeated_key_corrections_are_not_followed(take, issuer):
    """The issuer's choice of keys could single out people. The last draw is kept."""
    other = [(409, "token-key-other", {"key_id": keys()[place].short_id}) for place in (1, 0, 0)]
    issuer.told = other
    *_, first, second, left = take(
        *ANSWERED, ["flush"], ["flush"], ["report"], channel=issuer.channel(*STRATA), public=[REGION]
    )
    assert (first, second) == ("queued", "queued")
    assert [body[2] for _, body in issuer.asked] == [keys()[place].short_id for place in (0, 1, 1)]
    assert issuer.asked[1] == issuer.asked[2]
    assert left["reason"] == "issuer problem 409 token-key-other"


def test_localhost_issuer_of_a_remote_study_is_rejected():
    """The study was published elsewhere: no noise is drawn, and the error names the collector."""
    script = f"""
    const {{ openDevice, parseStudy }} = await import("{INDEX}");
    const {{ memoryLedger }} = await import("{JAVASCRIPT / "ledgers" / "memory.js"}");
    const study = await parseStudy(process.argv[1]);
    for (const collector of ["https://collector.example", "http://127.0.0.1:8000"]) {{
      const device = await openDevice({{ ledger: memoryLedger(), collector, maxEpsilon: "20" }});
      const answered = device.answer(study, {{ ever: "yes" }});
      console.log(await answered.then(({{ state }}) => state, ({{ code, field }}) => `${{code}} ${{field}}`));
    }}
    """
    channel = {
        "batches": {"hours": 24},
        "tokens": {"issuer": "http://localhost:8100", "keys": [{"key": keys()[0].stated}]},
    }
    study = Study(studies.document(studies.YES_NO, channel=channel))
    said = npm.node("--input-type=module", "-e", script, study.canonical().decode())
    assert said.split("\n")[:2] == ["study channel", "held"]


def test_the_issuers_order_of_keys_need_not_be_the_studys(take, issuer, site):
    issuer.strata["CODE"] = 1
    issuer.told = [(409, "token-key-other", {"key": 2, "key_id": keys()[1].short_id})]
    take(*ANSWERED, ["flush"], ["due"], ["flush"], channel=issuer.channel(*STRATA), public=[REGION])
    assert [body[2] for _, body in issuer.asked] == [key.short_id for key in keys()]
    check_token(site.tokens[0], Study(json.loads(site.study)), issuer, keys()[1])


@pytest.mark.parametrize(
    ("status", "name"),
    [(401, "token-needed"), (401, "token-invalid"), (409, "token-spent"), (503, "busy"), (502, "")],
)
def test_rejected_report_is_sent_in_the_next_window(status, name, take, site):
    """It keeps its token and the reason; no answer of the collector about tokens is final."""
    tries = 2 if status > 500 else 1
    site.statuses = [status] * tries
    if name:
        said = json.dumps({"type": f"urn:ldpkit:problem:{name}"})
        site.refusals[status] = ("application/problem+json", said)
    *_, due, state, waits, still, _, sent = take(
        *ANSWERED, ["flush"], ["due"], ["flush", 2], ["report"], ["flush", 2], ["due"], ["flush"]
    )
    assert (state, still, sent) == ("queued", "queued", "sent")
    assert waits["reason"] == (f"problem {status} {name}" if name else f"foreign {status}")
    assert window(waits["due"]) == window(due) + 1
    assert len(site.bodies()) == tries + 1
    assert len({*zip(site.tokens, site.bodies())}) == 1


def test_late_invitation_is_not_sent_with_the_token(take, site):
    take(*ANSWERED, ["flush"], ["invite", "LATE"], ["due"], ["flush"])
    assert site.invitations == [None]
    assert len(site.tokens) == 1


def test_issuer_is_not_asked_without_an_invitation(take, issuer):
    *_, state, _, given = take(
        ["answer", {"ever": "yes"}], ["consent"], ["flush"], ["invite", "CODE"], ["flush"]
    )
    assert (state, given) == ("uninvited", "queued")
    assert [code for code, _ in issuer.asked] == ["CODE"]


def test_clock_moved_far_back_draws_a_new_send_time(take, site):
    *_, due, _, moved, again = take(
        *ANSWERED, ["flush"], ["due"], ["at", DAY_MS * 1000], ["flush"], ["report"]
    )
    assert (moved, site.requests) == ("queued", [])
    assert due > again["due"]
    assert window(again["due"]) == 1001


WITHDRAWN = {
    "held": ([["answer", {"ever": "yes"}, "CODE"]], 0, 0),
    "not asked for a token": (ANSWERED, 0, 0),
    "without a token yet": ([*ANSWERED, ["flush"]], 0, 1),
    "with its token": ([*ANSWERED, ["flush"]], 0, 1),
    "on its way": ([*ANSWERED, ["flush"], ["due"], ["meanwhile", "withdraw"], ["flush"]], 0, 1),
    "sent": ([*ANSWERED, ["flush"], ["due"], ["flush"]], 1, 1),
    "asking for its token": ([*ANSWERED, ["meanwhile", "withdraw"], ["flush"]], 0, 1),
}


@pytest.mark.parametrize("stage", WITHDRAWN)
def test_report_can_be_withdrawn_at_each_stage(stage, take, issuer, site):
    """An unsent report is wiped; a report that may have left is deleted; neither is sent again."""
    steps, deletions, asked = WITHDRAWN[stage]
    if stage.startswith("without"):
        issuer.told = ["lost"]
    *_, withdrawn, left, _ = take(*steps, ["withdraw"], ["flush", 1, True], ["at", 2e12])
    assert (withdrawn, left) == (deletions, "gone")
    assert [method for method, *_ in site.requests] == ["PUT", "DELETE"][: 2 * deletions]
    assert len(issuer.asked) == asked


def test_deletion_is_sent_in_the_next_window(take, site):
    sent = [*ANSWERED, ["flush"], ["due"], ["flush"]]
    waits = [["withdraw"], ["flush"], ["report"]]
    # Withdrawn again it is put off no more.
    *_, due, _, _, early, first, before, again, still, second, _, gone = take(
        *sent, *waits, ["due", -1], *waits, ["due"], ["flush"]
    )
    assert (early, again, still, gone) == ("withdrawn", 1, "withdrawn", "gone")
    assert window(first["due"]) == window(due) + 1
    assert first["due"] == second["due"] == before + 1
    assert [method for method, *_ in site.requests] == ["PUT", "DELETE"]


def test_failed_deletion_is_retried_in_the_next_window(take, site):
    site.statuses = [200, 503]
    withdrawn = [["withdraw"], ["flush"], ["due"], ["flush"], ["report"]]
    *_, due, state, kept = take(*ANSWERED, ["flush"], ["due"], ["flush"], *withdrawn)
    assert state == "withdrawn"
    assert window(kept["due"]) == window(due) + 1


CHOOSE = """
const {{ choose }} = await import("{leaving}");
const channel = {{ batches: {{ hours: 1 }}, tokens: {{}} }};
const body = "{{}}";
const rows = {{
  first: {{ body, state: "queued", channel, invitation: "CODE" }},
  retried: {{ body, state: "queued", channel, invitation: "CODE", asked: {{ place: 0 }}, due: 1 }},
  uninvited: {{ body, state: "uninvited", channel, invitation: "" }},
  batched: {{ body, state: "queued", channel, invitation: "", token: "T", due: 1 }},
  deletion: {{ body: "", state: "withdrawn", channel, invitation: "", due: 1 }},
  alone: {{ body, state: "queued", invitation: "" }},
}};
const chosen = (ids, now, relay) => {{
  const memory = {{ reports: ids.map((id) => structuredClone({{ id, ...rows[id] }})) }};
  const leaves = choose(undefined, now, relay)(memory);
  const isLater = ({{ id, due }}) => leaves.has(id) || due > Date.now();
  return memory.reports.every(isLater) ? [...leaves].join() : "lost";
}};
const results = (...given) => new Set(Array.from({{ length: 64 }}, () => chosen(...given)));
const tries = {tries}.map((given) => [...results(...given)].sort());
console.log(JSON.stringify(tries));
"""
TOGETHER = [
    (["first", "batched", "deletion", "alone"], False, ["first,alone"]),
    (["first", "retried", "batched"], False, ["first,retried"]),
    (["retried", "batched", "deletion", "alone"], False, ["batched,deletion,alone", "retried,alone"]),
    (["first", "batched", "deletion"], True, ["first,deletion"]),
    (["uninvited", "batched"], False, ["uninvited,batched"]),
    (["batched", "deletion"], False, ["batched,deletion"]),
]
RELAYED = [
    (["batched", "deletion"], False, "relay", ["batched", "deletion"]),
    (["batched", "deletion", "alone"], True, "relay", ["batched,deletion,alone"]),
]


def test_batched_report_never_leaves_next_to_a_token_request():
    """A token request carries the invitation. A first request goes first; among retries chance decides."""
    tries = json.dumps([given for *given, _ in TOGETHER])
    script = CHOOSE.format(leaving=JAVASCRIPT / "leaving.js", tries=tries)
    said = json.loads(npm.node("--input-type=module", "-e", script))
    assert said == [expected for *_, expected in TOGETHER]


def test_batched_requests_leave_one_at_a_time_through_a_relay():
    """Two at once would belong to one person. A deletion that is hurried on purpose is not held back."""
    tries = json.dumps([given for *given, _ in RELAYED])
    script = CHOOSE.format(leaving=JAVASCRIPT / "leaving.js", tries=tries)
    said = json.loads(npm.node("--input-type=module", "-e", script))
    assert said == [expected for *_, expected in RELAYED]


@pytest.mark.slow
def test_token_exchange_works_with_another_library(take, issuer, site):
    """@cloudflare/privacypass-ts: its issuer and this device, our issuer and its client, its origin twice."""
    take(*ANSWERED, ["flush"], ["due"], ["flush"])
    study = Study(json.loads(site.study))
    issuer.strata["PEER"] = 0
    given = {
        "issuer": issuer.url,
        "key": keys()[0].stated,
        "digest": study.digest,
        "invitation": "PEER",
        "header": site.tokens[0],
    }
    command = [npm.newer_node(), "token_peer.mjs", JAVASCRIPT / "tokens.js", json.dumps(given)]
    done = subprocess.run(command, cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    check_token(f'PrivateToken token="{found.pop("its")}"', study, issuer, keys()[0])
    assert found.pop("changed") is False
    assert found == dict.fromkeys(
        ["challenge", "oursFromItsIssuer", "itsFromOurIssuer", "sent", "sentIsOf"], True
    )
