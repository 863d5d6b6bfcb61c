"""The JavaScript port, where node is installed: Python's payloads, its own randomness, its times."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ldp_client.audit.answers import Stream, random_answers
from ldp_client.audit.findings import Check
from ldp_client.audit.views import Batch
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from tests.privacy.checks.noise import SIZE_LIMIT
from tests.privacy.checks.products import coined, product_checks
from tests.privacy.checks.surprise import count_score
from tests.privacy.checks.timing import slower

PORT = Path(__file__).parents[3] / "js" / "index.js"
PROGRAM = Path(__file__).parent / "javascript.mjs"
OLDEST_NODE = 18
MOST_CHOICES = 400
STREAMS = 40
# Every choice is replayed as often, where their payloads are not more than so many bytes together.
FEW_BYTES = 6000
# Reports of all levels, in numbers of those of one answer; fewer of payloads above so many bytes.
MIXED = 8
SMALL = 32
RUNS = 600
SECONDS = 120
# Each of these tests is made up to so many times, as another program may disturb one.
ATTEMPTS = 3
RATE = 1e-9
# Finding an answer's place may take half as long again as another's, and a whole report a tenth.
TOLERANCES = {"quantise": 0.5, "perturb": 0.1}


def javascript_checks(
    study: Study,
    name: str,
    mechanism: Any,
    answers: list[Any],
    samples: int,
    sample_checks: Callable[..., list[Check]],
    port: Path = PORT,
) -> list[Check]:
    """All checks of one question's port; one that says so where there is none."""
    if absent := _absent(port):
        return [_not_made(absent)]
    cases = _cases(mechanism, answers, study.question(name))
    mixed = _mixed(mechanism, study.question(name), MIXED * samples)
    task = {
        "study": study.to_json(),
        "question": name,
        "answers": [_encoded(answer) for answer in answers],
        "samples": samples,
        "mixed": [_encoded(answer) for answer in mixed],
        "runs": RUNS,
        "replays": [{"answer": _encoded(answer), "bytes": data.hex()} for answer, data, _, _ in cases],
    }
    checks: list[Check] = []
    for attempt in range(ATTEMPTS):
        found = _run(port, task)
        if isinstance(found, Check):
            if not attempt:
                return [found]
            # What was found before counts.
            break
        if not attempt:
            checks += _same(cases, found["replays"])
            wrong = list(_unlawful(mechanism, answers, mixed, found, sample_checks))
            told = f"{samples} of each of {len(answers)} answers, {len(mixed)} of all levels"
            checks += [*wrong, Check("reports of its own randomness follow the law", not wrong, told)]
        times = list(_times(found))
        if all([check.passed for check in times]):
            break
        task = {**task, "replays": [], "mixed": [], "samples": 0}
    checks += times
    for check in checks:
        check.name = f"in JavaScript: {check.name}"
    return checks


def port_reports(
    study: Study, people: list[dict[str, Any]], given: dict[str, Any], port: Path = PORT
) -> dict[str, list[str]] | Check:
    """The port's whole reports; or a check that says why not.

    people: answers and public values, for "reports" on the port's own random bytes. given: the task of
    `same_bytes.port_task`, whose "people" and "devices" come back as reports on the bytes that it gives.
    """
    if absent := _absent(port):
        return _not_made(absent)
    none = {"answers": [], "mixed": [], "samples": 0, "runs": 0, "replays": []}
    task = {"study": study.to_json(), "question": study.questions[0].id, **none, "reports": people, **given}
    found = _run(port, task)
    return (
        found if isinstance(found, Check) else {key: found[key] for key in ("reports", "people", "devices")}
    )


def _not_made(why: str) -> Check:
    return Check("in JavaScript", True, why, made=False)


def _absent(port: Path) -> str:
    """Why nothing can be tried here, "" where it can."""
    if shutil.which("node") is None or not port.exists():
        return "node is not installed"
    try:
        done = subprocess.run(
            ["node", "--version"], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        # As it is told where the port is run.
        return ""
    found = re.match(r"v(\d+)\.", done.stdout)
    is_old = found is not None and int(found[1]) < OLDEST_NODE
    return f"node {OLDEST_NODE} or later is needed, and here is {done.stdout.strip()}" if is_old else ""


def _run(port: Path, task: dict[str, Any]) -> Any:
    command = ["node", str(PROGRAM), str(port)]
    text = json.dumps(task)
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return _not_made(f"node was not done after {SECONDS} s: try again when less runs here")
    except OSError as error:
        return _not_made(f"node cannot be started: {error.strerror}")
    if done.returncode:
        return _refusal(done.stderr)
    return json.loads(done.stdout)


def _refusal(trace: str) -> Check:
    """Of a study that the port does not take nothing is tried; anything else is a fault of the port's."""
    # Above it stands the line of the source that threw it.
    told = [line for line in trace.splitlines() if re.match(r"\w*Error: ", line)]
    why = told[0][:100] if told else "node failed"
    if why.startswith("LdpkitError: study: "):
        return _not_made(f"not run: {why}")
    return Check("in JavaScript", False, f"failed: {why}")


def _encoded(answer: Any) -> Any:
    if isinstance(answer, float) and answer - answer != 0:
        return {"special": {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(answer, "NaN")}
    return answer


def _cases(mechanism: Any, answers: list[Any], question: Question) -> list[tuple[Any, bytes, bytes, int]]:
    """Answers, all choices and levels among them, random bytes, Python's payload, and how many it took."""
    more: list[tuple[Any, bytes]] = []
    if isinstance(mechanism, SampledProducts):
        records = random_answers(question) * STREAMS
        more = [(one, coined(mechanism, one, seed, not seed % 3)) for seed, one in enumerate(records)]
    elif isinstance(mechanism, ChoiceMechanism) and not mechanism.boolean:
        labels = mechanism.labels[:: 1 + len(mechanism.labels) // MOST_CHOICES]
        few = STREAMS if len(labels) * mechanism.payload_size <= FEW_BYTES else 1
        more = [(label, b"") for label in labels] * few
    cases = []
    for seed, (answer, head) in enumerate([*[(answer, b"") for answer in answers] * STREAMS, *more]):
        stream = Stream(seed, head)
        try:
            payload = mechanism.perturb(answer, stream)
        except AnswerError:
            continue
        cases.append((answer, Stream(seed, head)(stream.taken + 64), payload, stream.taken))
    return cases


def _mixed(mechanism: Any, question: Question, count: int) -> list[Any]:
    """Records of all levels of sampled products, or all choices: for one report of each by its own dice."""
    if isinstance(mechanism, SampledProducts):
        return random_answers(question, count)
    if not isinstance(mechanism, ChoiceMechanism) or mechanism.boolean:
        return []
    fewer = count // (1 + mechanism.payload_size // SMALL)
    labels = mechanism.labels[:: 1 + mechanism.choices // MOST_CHOICES]
    return [labels[place % len(labels)] for place in range(fewer)]


def _unlawful(
    mechanism: Any,
    answers: list[Any],
    mixed: list[Any],
    found: dict[str, Any],
    sample_checks: Callable[..., list[Check]],
) -> Iterator[Check]:
    """The checks that reports of its own randomness did not stand."""
    for answer, payloads in zip(answers, found["draws"]):
        batch = Batch([bytes.fromhex(payload) for payload in payloads], mechanism.words)
        yield from [check for check in sample_checks(mechanism, answer, batch) if not check.passed][:3]
    if mixed:
        payloads = [bytes.fromhex(payload) for payload in found["mixed"]]
        yield from [check for check in _mixed_checks(mechanism, mixed, payloads) if not check.passed]


def _mixed_checks(mechanism: Any, asked: list[Any], payloads: list[bytes]) -> Iterator[Check]:
    """What they must be like: the law of products, or of each choice how often it is supported."""
    if isinstance(mechanism, SampledProducts):
        yield from product_checks(mechanism, [mechanism.quantise(one) for one in asked], payloads)
        return
    told: dict[int, list[bool]] = defaultdict(list)
    for answer, payload in zip(asked, payloads):
        own = mechanism.quantise(answer)
        told[own].append(mechanism.supported(payload, own))
    p = float(mechanism.p)
    worst = max([count_score(sum(some), len(some), p) for some in told.values()])
    detail = f"{len(asked)} reports; worst {worst:.1f} standard errors"
    yield Check("every choice has its stated law", worst < SIZE_LIMIT + 1, detail)


def _same(cases: list[Any], found: list[Any]) -> Iterator[Check]:
    expected = [(payload.hex(), taken) for _, _, payload, taken in cases]
    wrong = [one for one, two in zip(expected, found) if one != (two.get("payload"), two.get("taken"))]
    yield Check(
        "same payloads as Python on the same bytes", not wrong, f"{len(wrong)} of {len(cases)} differ"
    )


def _times(found: dict[str, Any]) -> Iterator[Check]:
    for name, tolerance in TOLERANCES.items():
        middle = [sorted(column)[len(column) // 2] for column in found[name]]
        slowest, fastest = (found[name][middle.index(pick(middle))] for pick in (max, min))
        differs = slower(slowest, fastest, RATE, tolerance)
        yield Check(
            f"time of {name} does not depend on the answer",
            not differs,
            f"medians from {min(middle):,} to {max(middle):,} ns",
        )
