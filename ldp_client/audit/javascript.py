"""The JavaScript port, where node is installed: Python's payloads, its own randomness, its times."""

import json
import shutil
import subprocess
from pathlib import Path

from ldp_client.audit.answers import Stream
from ldp_client.audit.findings import Check
from ldp_client.audit.timing import slower
from ldp_client.audit.views import Batch
from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms.choice import ChoiceMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ldp_client.documents.study import Study

PORT = Path(__file__).parent.parent / "js" / "index.js"
PROGRAM = Path(__file__).parent / "javascript.mjs"
MOST_CHOICES = 400
STREAMS = 40
RUNS = 600
SECONDS = 120
# Each of these tests is made up to so many times, as another program may disturb one.
ATTEMPTS = 3
RATE = 1e-9
# Finding an answer's place may take half as long again as another's, and a whole report a tenth.
TOLERANCES = {"quantise": 0.5, "perturb": 0.1}


def javascript_checks(
    study: "Study",
    name: str,
    mechanism: "Any",
    answers: "list[Any]",
    samples: int,
    sample_checks: "Callable[..., list[Check]]",
    port: "Path" = PORT,
) -> "list[Check]":
    """All checks of one question's port; one that says so where there is none."""
    if shutil.which("node") is None or not port.exists():
        return [Check("in JavaScript", True, "node is not installed", made=False)]
    cases = _cases(mechanism, answers)
    task = {
        "study": study.to_json(),
        "question": name,
        "answers": [_encoded(answer) for answer in answers],
        "samples": samples,
        "runs": RUNS,
        "replays": [{"answer": _encoded(answer), "bytes": data.hex()} for answer, data, _, _ in cases],
    }
    checks: "list[Check]" = []
    for attempt in range(ATTEMPTS):
        found = _run(port, task)
        if isinstance(found, Check):
            return [found]
        if not attempt:
            checks += _same(cases, found["replays"])
            for answer, payloads in zip(answers, found["draws"]):
                batch = Batch([bytes.fromhex(payload) for payload in payloads], mechanism.words)
                checks += [check for check in sample_checks(mechanism, answer, batch) if not check.passed][:3]
            good = all([check.passed for check in checks[1:]])
            told = f"{samples} of each of {len(answers)} answers"
            checks.append(Check("reports of its own randomness follow the law", good, told))
        times = list(_times(found))
        if all([check.passed for check in times]):
            break
        task = {**task, "replays": [], "samples": 0}
    checks += times
    for check in checks:
        check.name = f"in JavaScript: {check.name}"
    return checks


def port_reports(
    study: "Study", people: "list[dict[str, Any]]", given: "dict[str, Any]", port: "Path" = PORT
) -> "dict[str, list[str]] | Check":
    """The port's whole reports; or a check that says why not.

    people: answers and public values, for "reports" on the port's own random bytes. given: the task of
    `same_bytes.port_task`, whose "people" and "devices" come back as reports on the bytes that it gives.
    """
    if shutil.which("node") is None or not port.exists():
        return Check("in JavaScript", True, "node is not installed", made=False)
    question = {"question": study.questions[0].id, "answers": [], "samples": 0, "runs": 0, "replays": []}
    found = _run(port, {"study": study.to_json(), **question, "reports": people, **given})
    return (
        found if isinstance(found, Check) else {key: found[key] for key in ("reports", "people", "devices")}
    )


def _run(port: "Path", task: "dict[str, Any]") -> "Any":
    command = ["node", str(PROGRAM), str(port)]
    done = subprocess.run(
        command, input=json.dumps(task), capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode:
        refused = done.stderr.strip().splitlines()
        told = next((line for line in refused if "Error" in line), "node failed")
        return Check("in JavaScript", "study" in told, f"not run: {told[:100]}", made=False)
    return json.loads(done.stdout)


def _encoded(answer: "Any") -> "Any":
    if isinstance(answer, float) and answer - answer != 0:
        return {"special": {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(answer, "NaN")}
    return answer


def _cases(mechanism: "Any", answers: "list[Any]") -> "list[tuple[Any, bytes, bytes, int]]":
    """Answers, every choice among them, with random bytes, Python's payload, and how many it took."""
    more: "list[Any]" = []
    if isinstance(mechanism, ChoiceMechanism) and not mechanism.boolean:
        more = list(mechanism.labels[:: 1 + len(mechanism.labels) // MOST_CHOICES])
    cases = []
    for seed, answer in enumerate([*answers * STREAMS, *more]):
        stream = Stream(seed)
        try:
            payload = mechanism.perturb(answer, stream)
        except AnswerError:
            continue
        cases.append((answer, Stream(seed)(stream.taken + 64), payload, stream.taken))
    return cases


def _same(cases: "list[Any]", found: "list[Any]") -> "Iterator[Check]":
    expected = [(payload.hex(), taken) for _, _, payload, taken in cases]
    wrong = [one for one, two in zip(expected, found) if one != (two.get("payload"), two.get("taken"))]
    yield Check(
        "same payloads as Python on the same bytes", not wrong, f"{len(wrong)} of {len(cases)} differ"
    )


def _times(found: "dict[str, Any]") -> "Iterator[Check]":
    for name, tolerance in TOLERANCES.items():
        middle = [sorted(column)[len(column) // 2] for column in found[name]]
        slowest, fastest = (found[name][middle.index(pick(middle))] for pick in (max, min))
        differs = slower(slowest, fastest, RATE, tolerance)
        yield Check(
            f"time of {name} does not depend on the answer",
            not differs,
            f"medians from {min(middle):,} to {max(middle):,} ns",
        )
