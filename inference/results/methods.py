"""The methods paragraphs and citations for a paper, from the study and the posteriors.

They report only the study's statements, the fit's steps and the checks' findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import metadata
from math import isfinite
from typing import Any

from inference.results import references
from inference.results.diagnostics import MAX_R_HAT, MIN_ESS, listed
from inference.results.posterior import Posterior
from inference.results.prior_notes import DROWNED
from inference.results.provenance import Provenance
from inference.samplers import SAMPLERS
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted, rounded_up, visible
from schemas import Question, Study
from schemas.priors import prior_lines
from schemas.shuffling.reports import lines_of, shuffled_privacy
from summaries.influence import FALSE_SHARE

TITLE = "ldpkit: local differential privacy with honest posteriors"
AUTHORS = "The ldpkit developers"
KINDS = {
    "number": "a number", "choice": "one of several choices", "yes_no": "yes or no",
    "record": "several answers together", "table": "a table of records",
}  # fmt: skip


def citation() -> str:
    """Return the citation of the software."""
    about = metadata("ldpkit")
    return (
        f"{AUTHORS}. {TITLE} (version {about['Version']}, {about['License-Expression']} licence) [software]."
    )


def bibtex() -> str:
    """Return the citation as a BibTeX entry."""
    return (
        f"@software{{ldpkit,\n  author = {{{{{AUTHORS}}}}},\n  title = {{{{{TITLE}}}}},\n"
        f"  version = {{{metadata('ldpkit')['Version']}}}\n}}"
    )


def methods_of(study: Study, posteriors: Mapping[str, Posterior], made: Provenance) -> list[str]:
    """Return paragraphs on the study's privacy, each question, and the sampling and checks of posteriors."""
    asked = [question for question in study.questions if question.id in posteriors]
    return [
        _privacy(study),
        *_shuffled_privacy(study, [posteriors[question.id].n for question in asked]),
        *[_question(study, question, posteriors[question.id]) for question in asked],
        *drawing_of(list(posteriors.values()), made),
    ]


def cited(study: Study | None, posteriors: Mapping[str, Posterior]) -> list[str]:
    """Return the papers behind the methods used, ordered by author."""
    found: set[str] = set()
    for question in study.questions if study is not None else ():
        if question.id in posteriors:
            found |= {*references.papers(question.mechanism.name)}
    for posterior in posteriors.values():
        if posterior.method in SAMPLERS and SAMPLERS[posterior.method].label == "NUTS":
            found |= {references.NUTS, references.VEHTARI}
        if posterior.method in SAMPLERS:
            found.add(references.NUMPYRO)
    return sorted(found)


def _privacy(study: Study) -> str:
    """Return the study's privacy statement, which the reports do not prove."""
    which = f"The study “{visible(study.title)}” ({study.id}, version {study.version}) states that"
    epsilon = f"ε = {rounded_up(float(study.epsilon), 6)}"
    delta = f", {_delta(study.delta)}" if float(study.delta) else ""
    if study.protocol is not None:
        return (
            f"{which} each device adds noise and sends secret shares to {len(study.protocol.nodes)} nodes, "
            f"whose sum alone is opened: it is differentially private for each person with {epsilon}{delta}, "
            f"if the nodes do not collude and, of at least {study.protocol.min_devices} devices, at most "
            f"{study.protocol.max_faulty} cheat or drop out."
        )
    holders = study.respondent == "holder"
    whose = "record" if holders else "person"
    where = "where the table is kept" if holders else "on the person's device"
    how = "all questions together are"
    if study.sample_one_question:
        how = "each device answers one question, drawn by chance; that is"
    return (
        f"{which} noise is added to every answer {where} before anything is sent; {how} "
        f"{'' if holders else 'locally '}differentially private for each {whose} with {epsilon}{delta}. "
        f"Neighbours are any two {'values of one record' if holders else 'answers of one person'}."
    )


def _shuffled_privacy(study: Study, counts: Sequence[int]) -> list[str]:
    """Return the privacy of the shuffled set of reports, for a study with a channel.

    counts: reports that answer each question; too low a count only makes the bound larger. False reports hide
    no one: a share of FALSE_SHARE is left out. Returns nothing if the study has public values: reports then
    hide only among reports of equal values, whose smallest number is unknown here.
    """
    people = sum(counts) if study.sample_one_question else min(counts, default=0)
    if study.channel is None or study.public or not people:
        return []
    try:
        privacy = shuffled_privacy(study, max(1, int(people * (1 - FALSE_SHARE))))
    except InputError:
        # No bound is certified for noise with a δ.
        return []
    return [" ".join(lines_of(study, privacy))]


def _delta(delta: Any) -> str:
    return f"δ = {rounded_up(float(delta), 2)}"


def _question(study: Study, question: Question, posterior: Posterior) -> str:
    mechanism = mechanisms_of(study)[question.id]
    name = question.mechanism.name
    sources = "; ".join(references.short(paper) for paper in references.papers(name))
    delta = f" and {_delta(mechanism.privacy.delta)}" if float(mechanism.privacy.delta) else ""
    priors = listed([line for line in prior_lines(dict(posterior.prior))])
    text = f"“{visible(question.full_text)}” ({question.id})" if question.full_text else question.id
    return (
        f"{text} asked for {KINDS.get(question.ask, question.ask)}, under {references.called(name)}"
        f"{f' ({sources})' if sources else ''} with ε = "
        f"{rounded_up(float(mechanism.privacy.epsilon), 6)}{delta}. "
        f"{posterior.size_in_words()[0].upper()}{posterior.size_in_words()[1:]} were fitted with the model "
        f"{posterior.model}, whose likelihood includes the noise"
        f"{f', under the priors {priors}' if priors else ''}. {_found(posterior)}"
    ).replace("1 report were", "1 report was")


def _found(posterior: Posterior) -> str:
    """Return the verdict."""
    found = f"Verdict: {posterior.verdict.overall}."
    if posterior.identified is not None and posterior.identified.sets:
        found += f" Possible values {posterior.identified.condition} are given next to the intervals."
    return found


def drawing_of(posteriors: Sequence[Posterior], made: Provenance) -> list[str]:
    """Return a paragraph on the draws of each method, then a paragraph on the checks."""
    lines = []
    for method in dict.fromkeys(posterior.method for posterior in posteriors):
        own = [posterior for posterior in posteriors if posterior.method == method]
        lines.append(_sampled(method, own, made))
    return [*lines, _checks(posteriors)]


def _sampled(method: str, posteriors: Sequence[Posterior], made: Provenance) -> str:
    label = SAMPLERS[method].label if method in SAMPLERS else f"the published method {method}"
    source = f" ({references.short(references.NUTS)})" if label == "NUTS" else ""
    shapes = {next(iter(one.draws.values())).shape for one in posteriors}
    sizes = listed(sorted(f"{counted(chains, 'chain')} of {kept:,} kept draws" for chains, kept in shapes))
    numpyro = f"NumPyro {made.versions['numpyro']} ({references.short(references.NUMPYRO)}) and "
    of = f" of {listed([one.question for one in posteriors])}"
    return (
        f"Posteriors{of} were drawn by {label}{source} with {numpyro if method in SAMPLERS else ''}ldpkit "
        f"{made.versions['ldpkit']}: {sizes}, seed {posteriors[0].seed}."
    )


def _checks(posteriors: Sequence[Posterior]) -> str:
    rows = [row for one in posteriors for row in one.rows().values() if isfinite(row["r_hat"])]
    measured = (
        f" (here at most {max(row['r_hat'] for row in rows):.3f}, at least "
        f"{min(row['ess_bulk'] for row in rows):,.0f} and {min(row['ess_tail'] for row in rows):,.0f})"
        if rows
        else ""
    )
    return (
        f"Draws were called good with rank-normalised R-hat of at most {MAX_R_HAT}, and bulk and tail "
        f"effective sample sizes of at least {MIN_ESS:.0f} ({references.short(references.VEHTARI)})"
        f"{measured}; a model, where replicated reports, and the laws that noise alone gives, did not speak "
        "against it; a parameter as learnt where its posterior's standard deviation is at most "
        f"{DROWNED:g} of its prior's."
    )
