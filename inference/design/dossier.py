"""A pack for an ethics board and a data protection impact assessment, written from a study.

Each statement follows from the study document or from the code; facts that only the owner can know are blanks
to fill in.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from math import exp
from pathlib import Path

from inference.design.dossier_consent import consent
from inference.design.dossier_parts import Part, Section, blank, how_it_leaves, listed, once, says, together
from inference.results import rendering
from inference.results.saving import new_folder
from ldp_client import mechanisms_of
from ldp_client.commands.study_warnings import notes_of, warnings_of
from ldp_client.explain import (
    answers_in_words,
    factors,
    in_words,
    kept_in_words,
    odds_of,
    report_size,
)
from ldp_client.words.public import cells_in_words, public_lines
from ldp_client.words.text import rounded_up, visible
from schemas import Study

FILES = ("dossier.md", "dossier.html")
# How sure an observer may have been before, besides the even guess.
BEFORE = (0.01, 0.1, 0.5)


def save_dossier(study: Study, folder: Path) -> None:
    """Write dossier.md and dossier.html, to a new folder: blanks may be filled in. Raises InputError."""
    shown = {"study": study, "sections": sections_of(study), "version": version("ldpkit")}
    with new_folder(folder) as made:
        for name, templates in zip(FILES, (rendering.MARKDOWN, rendering.PAGES), strict=True):
            text = templates.get_template(f"{name}.j2").render(shown)
            (made / name).write_text(text, encoding="utf-8")


def sections_of(study: Study) -> list[Section]:
    """Return the pack, section by section."""
    return [
        Section("Who is responsible", _responsible(study)),
        Section("What is asked, and why", tuple(_asked(study))),
        Section("What leaves the device", tuple(_leaves(study))),
        Section("What a report can tell", tuple(_tells(study))),
        Section("Who could learn what, and under which assumption", (_learners(study),)),
        Section("What is not protected", (listed(list(_unprotected(study))),)),
        Section("Retention", _retention(study)),
        Section("Withdrawal", _withdrawal(study)),
        Section("Consent text, a draft", tuple(consent(study))),
        Section("Assessment and decision", _decision()),
    ]


def _stated(study: Study, name: str, otherwise: str) -> Part:
    """Return a field of the study, or the blank for it."""
    value = getattr(study, name)
    return says(f"{name.capitalize()}: {visible(value)}") if value else blank(otherwise)


def _responsible(study: Study) -> tuple[Part, ...]:
    return (
        _stated(study, "owner", "The controller: name and address; it decides on purpose and means."),
        _stated(study, "contact", "Whom participants can ask, and the data protection officer."),
        _stated(study, "ethics", "The ethics board, its reference and the day of its approval."),
        blank(
            "Who runs the collector, on whose servers and in which country; processors and their contracts."
        ),
        blank("The legal basis of the processing."),
    )


def _asked(study: Study) -> Iterator[Part]:
    if study.purpose:
        yield says(f"Purpose: {visible(study.purpose)}")
    else:
        yield blank("The purpose, in words for participants.")
    days = f"from {study.opens or 'any day'} to {study.closes or 'any day'}"
    yield says(f"The study takes reports {days} (UTC). {once(study)}")
    rows = tuple(
        (visible(one.full_text or one.id), one.id, answers_in_words(one), one.mechanism.name)
        for one in study.questions
    )
    yield Part("table", "", ("question", "id", "possible answers", "mechanism"), rows)
    if any(one.refusal for one in study.questions):
        yield says("If “prefer not to say” is a possible answer, noise hides it as it hides the others.")
    if study.sample_one_question:
        yield says("Each device answers a single question, which it draws at random.")
    if study.paper is not None:
        yield says("Some questions are also asked on paper, with dice; the study states their chances.")
    yield blank(
        "Why these questions, and no fewer, are needed; who is asked, how they are chosen and reached."
    )
    yield blank("Whether children or others who cannot consent may be asked, and what is done then.")


def _leaves(study: Study) -> Iterator[Part]:
    mechanisms = mechanisms_of(study)
    if study.protocol is not None:
        yield says(
            f"Secret shares leave the device, one for each of {len(study.protocol.nodes)} nodes, of a vector "
            "that holds the answers with noise that is too small to protect them alone."
        )
    else:
        yield says(
            "One report: a random id, the study's id, version and digest, and of each answered question the "
            f"noisy payload. Every report is {report_size(study):,} bytes long, whatever is answered. The "
            "collector also keeps the day, no finer time."
        )
        yield says(
            "Devices and the participant's page add noise to the answers before anything is sent. An "
            "analyst who makes reports from a file of answers (“ldpkit perturb”) has seen them."
        )
    noise = tuple((one.id, in_words(mechanisms[one.id])) for one in study.questions)
    yield Part("table", "", ("question", "what the noise does"), noise)
    if study.public:
        yield listed([visible(line.strip()) for line in public_lines(study)])
    else:
        yield says("No public value is sent: nothing else about a person leaves without noise.")
    yield from how_it_leaves(study)
    yield says(
        "The collector keeps no name, address, cookie or clock of a device. A proxy or a host in front of it "
        "may keep addresses."
    )
    yield blank("What proxies, hosts and the app itself log of participants, and for how long.")


def _tells(study: Study) -> Iterator[Part]:
    yield says(
        "ε (epsilon) bounds what a report can tell any reader, whatever else the reader knows, now or "
        "later. It is a bound on odds, not secrecy."
        if study.protocol is None
        else "ε (epsilon) bounds what the sum of all devices' vectors can tell about one device, as long as "
        "the nodes are separate parties. All shares of one device together reveal its answers: its noise "
        "is too small. It is a bound on odds, not secrecy."
    )
    head = (
        "question",
        "ε",
        "δ",
        "at most so many times as likely",
        *[f"who was {_percent(one)} sure before" for one in BEFORE],
    )
    mechanisms = mechanisms_of(study)
    rows = [
        _row(one.id, float(mechanisms[one.id].privacy.epsilon), float(mechanisms[one.id].privacy.delta))
        for one in study.questions
    ]
    if len(rows) > 1:
        rows.append(_row(together(study), float(study.epsilon), float(study.delta)))
    yield Part("table", "", head, tuple(rows))
    yield says(
        "The last columns show how sure of an answer an observer can be at most after the report, given how "
        "sure the observer was before."
    )
    yield says(odds_of(study, float(study.epsilon), float(study.delta)))
    warned = [*warnings_of(study), *notes_of(study)]
    if warned:
        yield listed([visible(line) for line in warned])


def _row(name: str, epsilon: float, delta: float) -> tuple[str, ...]:
    factor, _ = factors(epsilon)
    return (
        name,
        rounded_up(epsilon, 6),
        rounded_up(delta, 2) if delta else "0",
        factor,
        *[_sure(before, epsilon) for before in BEFORE],
    )


def _sure(before: float, epsilon: float) -> str:
    """Return how sure an observer can be of one answer out of two at most, rounded up."""
    return f"{rounded_up(min(100.0, 100 * before / (before + (1 - before) * exp(-epsilon))), 3)} %"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


Row = tuple[str, str, str]


def _receivers(study: Study) -> tuple[list[Row], str]:
    """Return who receives the devices' messages, and how they are protected on their way."""
    if study.protocol is None:
        here = (
            "the operator of the collector, or a reader or thief of its database",
            "the noisy reports and their days; about any answer only as much as ε allows",
            "devices run this code unchanged, and their systems' random numbers are unpredictable",
        )
        return [
            here
        ], "reports are sent over TLS, which keeps their content unread; the noise holds without it"
    fewer = (
        "one node, or fewer than all of them",
        "nothing about one device's vector; about the sum only as much as ε allows",
        f"at least {study.protocol.min_devices} devices take part, of which at most "
        f"{study.protocol.max_faulty} cheat or drop out",
    )
    whole = ("all nodes together", "every answer exactly", "none: they must not be one party")
    return [
        fewer,
        whole,
    ], "each share is encrypted to its node's key; a holder of all nodes' keys can read the answers"


def _learners(study: Study) -> Part:
    receivers, on_the_way = _receivers(study)
    rows = [
        *receivers,
        (
            "an observer of the network",
            "that a device took part, when, and from which address; not the answer, and not from a "
            "report's size",
            on_the_way,
        ),
        (
            "an attacker who can read the device while a person answers",
            "the answer itself",
            "none: nothing here protects against an attacker who controls the device",
        ),
        (
            "a reader of the published results",
            "facts about the people together, and so perhaps much about a person who is known to be "
            "among them",
            "none: that is inference from others' answers",
        ),
    ]
    if study.public:
        rows.append(
            (
                "an observer who knows a person's public values",
                "that the person took part, and which report is theirs if few share the values; about the "
                "answer only as much as ε allows",
                cells_in_words(study, None),
            )
        )
    if any(one.repeats for one in study.questions):
        rows.append(
            (
                "a holder of reports of several rounds",
                "about a memoized question's answer only as much as its ε allows for all reports together",
                "the device keeps its first noisy answer",
            )
        )
    return Part("table", "", ("who", "could learn", "assuming that"), tuple(rows))


def _unprotected(study: Study) -> Iterator[str]:
    yield "Whether a person took part."
    yield "Facts about a group that a person is known to belong to."
    yield "A person who answers on several devices, or on a wiped device again: ε is spent each time."
    yield "The ε of several studies of one person adds up; a device refuses to exceed its owner's budget."
    yield "A report that was sent cannot be unsent: withdrawal gives no ε back."
    yield "Results against dishonest answers: false reports cannot be told from true ones."
    if study.public:
        yield "Public fields: they are sent as they are, and no ε bounds what they tell."
    if float(study.delta):
        yield f"With a probability of at most δ = {rounded_up(float(study.delta), 2)} the bound may not hold."
    if study.respondent == "holder":
        yield "Several records of one person in a table: m of them are protected with m times ε."


def _retention(study: Study) -> tuple[Part, ...]:
    kept = [says(f"Stated to participants: {line}.") for line in kept_in_words(study)]
    otherwise = "How long reports are kept, and why so long; how long exports and backups."
    return (
        *kept,
        blank("Why so long; how long exports and backups are kept." if kept else otherwise),
        says(
            "“ldpkit expire --before” permanently deletes reports that arrived before a day. "
            "Earlier backups and exports keep them until they are deleted too."
        ),
    )


def _withdrawal(study: Study) -> tuple[Part, ...]:
    where = "each node" if study.protocol is not None else "the collector"
    return (
        says(
            f"A person can withdraw on the device that answered: it deletes its own copy, and asks {where} "
            "to delete the report until that is confirmed. Otherwise only the operator can delete the report."
        ),
        says("Exports, backups and results that were made before may still contain it."),
        blank("How people who lost the device are answered: a report has no name by which to find it."),
    )


def _decision() -> tuple[Part, ...]:
    return (
        blank("Necessity and proportionality: why the purpose cannot be reached with less."),
        blank(
            "Risks to participants that remain (re-identification of who took part, harm from group "
            "results), how likely and how grave."
        ),
        blank("Measures against them besides the noise: access, hosting, training, who may export."),
        blank("Who was consulted: participants or their representatives, the data protection officer."),
        blank("Decision, name, day and signature."),
    )
