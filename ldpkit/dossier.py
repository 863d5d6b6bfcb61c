"""A dossier for an ethics board and a data protection impact assessment, written from a study in Markdown.

Each statement follows from the study document or from the code; facts that only the owner can know are blanks
to fill in. All words are in the template dossier.md.j2.
"""

import re
from importlib.metadata import version
from math import exp

from jinja2 import Environment, PackageLoader, StrictUndefined

from ldp_client import explain, mechanisms_of
from ldp_client.mechanisms import Privacy
from ldp_client.words.text import rounded_up, visible
from schemas import Study
from schemas.warnings import notes_of, warnings_of

# How sure an observer may have been before, besides the even guess.
BEFORE = (0.01, 0.1, 0.5)
_MARKUP = re.compile(r"([\\`*_\[\]|~$]|^[#+=-])|^(\d+)([.)])(?=\s|$)")


def markdown(text: object) -> str:
    """Escape text for a line or a cell of Markdown, so that it shows literally and contains no HTML."""
    line = " ".join(visible(str(text)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(lambda found: f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}", line)


MARKDOWN = Environment(
    loader=PackageLoader("ldpkit"), undefined=StrictUndefined, trim_blocks=True, finalize=markdown
)


def dossier_of(study: Study) -> str:
    """Return the dossier in Markdown. Texts of the study show literally."""
    epsilon, delta, mechanisms = float(study.epsilon), float(study.delta), mechanisms_of(study)

    def shown_words(language: str) -> list[str]:
        shown = study.shown_in(language)
        texts = (shown.title, shown.purpose, *(question.full_text for question in shown.questions))
        return list(filter(None, texts))

    def odds_of_privacy(privacy: Privacy) -> str:
        return explain.odds_of(study, float(privacy.epsilon), float(privacy.delta))

    # ε, δ and their consequences for each question, and for all of several.
    together = "all that a device answers" if study.sample_one_question else "all questions together"
    bounds = {name: (each.privacy.epsilon, each.privacy.delta) for name, each in mechanisms.items()}
    if len(study.questions) > 1:
        bounds[together] = study.epsilon, study.delta
    rows = [_row(name, float(epsilon), float(delta)) for name, (epsilon, delta) in bounds.items()]
    text = MARKDOWN.get_template("dossier.md.j2").render(
        study=study,
        version=version("ldpkit"),
        mechanisms=mechanisms,
        channel=explain.channel_lines(study),
        once=_once(study),
        answers=explain.answers_in_words,
        size=explain.report_size(study) if study.protocol is None else 0,
        noise=explain.in_words,
        public=explain.public_lines(study),
        before=BEFORE,
        privacy=rows,
        odds=explain.odds_of(study, epsilon, delta),
        odds_of=odds_of_privacy,
        warnings=[*warnings_of(study), *notes_of(study)],
        cells=explain.cells_in_words(study, None) if study.public else "",
        delta=rounded_up(delta, 2) if delta else "",
        kept=explain.kept_in_words(study),
        together=together,
        shown_words=shown_words,
        asks=explain.who_asks(study),
    )
    return re.sub(r"\n\n+", "\n\n", text)


def _once(study: Study) -> str:
    """Return how often a device answers."""
    if study.respondent == "holder":
        return "Each holder answers once, with a table of many records; a person below is one record of it."
    again = [question.id for question in study.questions if question.repeats]
    if not again:
        return "Each device answers once."
    others = len(again) < len(study.questions)
    return (
        f"Each device answers {', '.join(again)} (memoized) once in each version, and repeats its first "
        f"noisy answer with fresh noise{'; the other questions once in all versions' if others else ''}."
    )


def _row(name: str, epsilon: float, delta: float) -> tuple[str, ...]:
    shown = (rounded_up(epsilon, 6), rounded_up(delta, 2) if delta else "0", explain.factors(epsilon)[0])
    return (name, *shown, *(_sure(before, epsilon) for before in BEFORE))


def _sure(before: float, epsilon: float) -> str:
    """Return how sure an observer can be of one answer out of two at most, rounded up."""
    return f"{rounded_up(min(100.0, 100 * before / (before + (1 - before) * exp(-epsilon))), 3)} %"
