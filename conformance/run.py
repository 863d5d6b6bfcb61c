"""Run a port against the test vectors: python conformance/run.py COMMAND [ARGUMENT ...]."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "tests" / "golden" / "vectors"
# Files of vectors: each of the mechanism with its name, or of what it says.
DRAWN = (
    *("laplace", "gaussian", "randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard"),
    *("refusal", "refusable_numbers", "missing", "memoized", "gaussian_record", "gaussian_statistics"),
    *("sampled_products", "levels", "several", "summed_gaussian"),
)
# Bytes behind those that a good port reads: one that reads more is told of, and does not just stop.
SPARE = 64
Case = dict[str, Any]


def stream(head: str, seed: str, size: int) -> bytes:
    """The first bytes of a vector's stream."""
    found = bytes.fromhex(head)
    counter = 0
    while len(found) < size:
        found += hashlib.sha256(seed.encode() + counter.to_bytes(8, "big")).digest()
        counter += 1
    return found[:size]


def cases() -> Iterator[tuple[Case, Case]]:
    """What a port is asked, and what it has to answer."""
    for name in DRAWN:
        yield from _draws(name)
    for entry in _vectors("pieces")["pieces"]:
        asked = {key: entry[key] for key in ("vector", "nodes", "expansion", "random")}
        named = f"pieces {entry['expansion']} {entry['nodes']}"
        yield {"case": named, "kind": "pieces", **asked}, {key: entry[key] for key in ("pieces", "bytes")}
    for entry in _vectors("report_ids")["report_ids"]:
        yield {"case": f"id {entry['secret']}", "kind": "id", "secret": entry["secret"]}, {"id": entry["id"]}
    for entry in _vectors("studies")["studies"]:
        if "digest" in entry:
            asked = {"case": f"digest {entry['name']}", "kind": "digest", "text": entry["text"]}
            yield asked, {"digest": entry["digest"]}


def _draws(name: str) -> Iterator[tuple[Case, Case]]:
    vectors = _vectors(name)
    for place, draw in enumerate(vectors["draws"]):
        study = vectors["studies"][draw["study"]]["study"]
        (question,) = study["questions"]
        fresh = stream(draw.get("head", ""), draw["seed"], draw["bytes"] + SPARE)
        asked = {"question": question, "answer": draw["answer"], "random": fresh.hex()}
        if "protocol" in study:
            asked["protocol"] = study["protocol"]
        found = {key: draw[key] for key in ("payload", "refused", "bytes") if key in draw}
        yield {"case": f"{name} {place}", "kind": "draw", **asked}, found


def _vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def judged(command: list[str]) -> dict[str, list[str]]:
    """{"passed", "failed", "unsupported": names of cases}. Raises SystemExit for a port that stops early."""
    asked = [*cases()]
    text = "".join(json.dumps(case) + "\n" for case, _ in asked)
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=False, timeout=300)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(asked):
        raise SystemExit(f"the port ended with {done.returncode} after {len(lines)} of {len(asked)} cases")
    found: dict[str, list[str]] = {"passed": [], "failed": [], "unsupported": []}
    for (case, expected), line in zip(asked, lines):
        answer = json.loads(line)
        verdict = "passed" if answer == expected else "failed"
        found["unsupported" if answer == {"unsupported": True} else verdict].append(case["case"])
    return found


def main() -> None:
    """Say which cases fail; end with 1 if any does."""
    if len(sys.argv) < 2:
        raise SystemExit("say how the port is started: python conformance/run.py COMMAND [ARGUMENT ...]")
    found = judged(sys.argv[1:])
    for case in found["failed"]:
        print("failed:", case)
    print(", ".join(f"{len(found[verdict])} {verdict}" for verdict in found))
    raise SystemExit(1 if found["failed"] or not found["passed"] else 0)


if __name__ == "__main__":
    main()
