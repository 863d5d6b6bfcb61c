"""Earlier steps of the same study, joined to a fit's result: plan, calibration and audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from inference.results.intervals import written
from inference.results.posterior import Posterior
from inference.results.provenance import Input, input_of
from inference.results.verdict import EARLIER, findings
from ldp_client.documents.errors import InputError
from ldp_client.words.text import visible
from schemas import Study

# The file of each step in its command's folder. An audit is a file of any name.
PLAN, CALIBRATION = "plan.json", "calibration.json"
LineOf: TypeAlias = "Callable[[Study, Posterior, Any], Joined]"


class Joined(NamedTuple):
    """A line on a question from plan, calibration or audit. state: "good", "bad", or "" for no verdict."""

    question: str
    what: str
    state: str
    says: str


@dataclass(frozen=True)
class Earlier:
    """Earlier steps. lines: from all steps. calibrated: whether calibration was read. files: inputs read."""

    lines: tuple[Joined, ...] = ()
    calibrated: bool = False
    files: tuple[Input, ...] = ()

    @property
    def ok(self) -> bool:
        """Return True if no earlier step contradicts the result."""
        return all(line.state != "bad" for line in self.lines)

    def on(self, posteriors: Mapping[str, Posterior]) -> dict[str, Posterior]:
        """Return the posteriors with the contradicting lines added to their verdicts."""
        return {name: self._on(name, posterior) for name, posterior in posteriors.items()}

    def _on(self, question: str, posterior: Posterior) -> Posterior:
        about = (line for line in self.lines if line.question == question)
        against = (f"{line.what}: {line.says}" for line in about if line.state == "bad")
        known = posterior.diagnostics.findings
        return posterior.with_findings(
            finding for finding in findings(EARLIER, against) if finding not in known
        )

    def to_document(self) -> dict[str, Any]:
        """Return its entry in posterior.json."""
        return {"ok": self.ok, "says": [line._asdict() for line in self.lines]}


NOTHING = Earlier()


def read_earlier(study: Study, paths: Sequence[str]) -> Callable[[Mapping[str, Posterior]], Earlier]:
    """Read the earlier steps of a fit; return a function that compares them with the posteriors.

    paths: folders of `ldpkit plan` and `calibrate`, and files of `ldpkit audit --out`. Raises InputError if a
    file cannot be read, or belongs to another study.
    """
    steps: list[tuple[LineOf, dict[str, Any]]] = []
    files = []
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            steps.append((_audited, _entries(study, path, is_audit=True)))
        elif (path := path / CALIBRATION).exists():
            steps.append((_calibrated, _entries(study, path)))
        else:
            path = path.with_name(PLAN)
            steps.append((_planned, _entries(study, path)))
        files.append(input_of(str(path)))

    def of(posteriors: Mapping[str, Posterior]) -> Earlier:
        lines = [
            line_of(study, posterior, entries.get(name))
            for line_of, entries in steps
            for name, posterior in posteriors.items()
        ]
        return Earlier(tuple(lines), any(line_of is _calibrated for line_of, _ in steps), tuple(files))

    return of


def _entries(study: Study, path: Path, is_audit: bool = False) -> dict[str, Any]:
    """Return each question's entry of an earlier step's file. Raises InputError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if is_audit:
            digests = {str(entry["study_digest"]) for entry in document}
            entries = {str(entry["question"]): entry for entry in document if entry["checks"] is not None}
        else:
            digests, entries = {str(document["study_digest"])}, dict(document["questions"])
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: give a folder of `ldpkit plan` or `calibrate`, or a file of `ldpkit audit --out`",
            code="result.not_a_result",
        ) from None
    if others := digests - {study.digest}:
        raise InputError(
            f"{path} is of a study with digest {visible(min(others)[:64])}, not of {study.id} version "
            f"{study.version} with digest {study.digest}: make it again with this one",
            code="result.input_of_other_study",
        )
    return entries


def _planned(study: Study, posterior: Posterior, entry: Any) -> Joined:
    name = posterior.question
    if not isinstance(entry, dict):
        return Joined(name, "plan", "", "not planned")
    if "difference" in entry:
        return Joined(name, "plan", "", "planned for a difference of two groups, which this fit is not")
    epsilon = Decimal(str(study.question(name).mechanism.epsilon))
    try:
        own = [widths for stated, widths in entry["half_widths"].items() if Decimal(stated) == epsilon]
        devices = entry["devices"]
        if not own:
            return Joined(name, "plan", "", f"planned for other budgets than the study's ε = {epsilon}")
        parameter = next(one for one in own[0] if one in posterior.draws)
        said = [
            f"± {_width(posterior, parameter, float(width))} from {int(n):,} devices"
            for n, width in zip(devices, own[0][parameter], strict=True)
        ]
    except (KeyError, TypeError, ValueError, ArithmeticError, StopIteration):
        return Joined(name, "plan", "", "planned for other parameters than this fit has")
    low, high = np.quantile(posterior.draws[parameter], [0.05, 0.95])
    reached = _width(posterior, parameter, float(high - low) / 2)
    return Joined(
        name,
        "plan",
        "",
        f"expected of {parameter} {', '.join(said)}; reached ± {reached} from {_size(posterior)} "
        "(halves of the 90 % interval)",
    )


def _width(posterior: Posterior, name: str, width: float) -> str:
    share = posterior.is_share(name)
    return f"{written(width, share)}{' points' if share else ''}"


def _size(posterior: Posterior) -> str:
    """State a result's size, with the number of devices if each answers one question of several."""
    said = posterior.size_in_words()
    if posterior.questions == 1:
        return said
    about = posterior.n * posterior.questions
    return f"{said}, as of about {about:,} devices that answer one of {posterior.questions} questions each"


def _calibrated(study: Study, posterior: Posterior, entry: Any) -> Joined:
    name = posterior.question
    if not isinstance(entry, dict):
        return Joined(name, "calibration", "", "not calibrated")
    try:
        covered = [float(row["covered_90"]) for row in entry["parameters"].values()]
        held = (
            f"{min(covered):.0%}"
            if min(covered) == max(covered)
            else f"{min(covered):.0%} to {max(covered):.0%}"
        )
        who = "answers to it" if study.sample_one_question else "devices"
        studies = f"{int(entry['studies'])} simulated studies of {int(entry['n']):,} {who}"
        ok, reasons = entry["ok"] is True, [str(one) for one in entry["reasons"]]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"the calibration's entry for {name} is unreadable: calibrate it again",
            code="result.calibration_unreadable",
        ) from None
    said = f"in {studies} 90 % intervals contained the truth in {held.replace('%', ' %')} of them"
    return Joined(name, "calibration", "good" if ok else "bad", "; ".join([said, *([] if ok else reasons)]))


def _audited(_study: Study, posterior: Posterior, entry: Any) -> Joined:
    name = posterior.question
    if entry is None:
        return Joined(name, "audit", "", "not audited")
    checks = [one for one in entry["checks"] if isinstance(one, dict)]
    failed = [f"{one.get('name')}: {one.get('detail')}" for one in checks if one.get("passed") is not True]
    ok = entry.get("passed") is True and not failed and checks != []
    shown, stated = _digits(entry.get("lower_bound")), _digits(entry.get("epsilon"))
    said = (
        f"{len(checks)} checks made, {len(failed)} failed; "
        f"reports showed an ε of at least {shown}, and {stated} is stated"
    )
    return Joined(name, "audit", "good" if ok else "bad", "; ".join([said, *failed]))


def _digits(value: object) -> str:
    """Format a decimal of an audit with four digits, and other values unchanged."""
    try:
        return f"{float(str(value)):.4g}"
    except ValueError:
        return visible(str(value))[:20]
