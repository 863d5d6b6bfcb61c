"""The report of a fit: a page that needs no network, its numbers as CSV, and a picture of each posterior."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from inference.results import figures
from inference.results.identified import set_of
from inference.results.intervals import REFUSED, USUAL, Interval, between, written
from inference.results.methods import defence_of
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance, made_now
from inference.results.quantity import Quantity
from inference.results.saving import save_posteriors
from inference.results.verdict import CARE, NOT_USABLE, USABLE
from inference.samplers import SAMPLERS
from ldp_client import explain, mechanisms_of
from ldp_client.words.text import visible
from schemas import Study
from schemas.disk import no_formula
from schemas.priors import prior_lines

PAGE, CSV = "report.html", "tables.csv"
# A headline gives at most so many numbers, or sentences of a formula; a section at most so many sentences.
MOST_SAID, MOST_QUOTED, MOST_SENTENCES = 4, 3, 60
# Styles of a verdict.
STYLES = {USABLE: "ok", CARE: "note", NOT_USABLE: "bad"}
TEMPLATES = Environment(
    loader=PackageLoader("inference.results"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
# Figures are our own SVG. A sentence begins with a capital letter.
TEMPLATES.filters |= {
    "svg": lambda figure: Markup(figures.to_svg(figure)),
    "begin": lambda text: text[:1].upper() + text[1:],
}


def save_report(
    posteriors: Mapping[str, Posterior],
    folder: Path,
    study: Study | None = None,
    *,
    title: str = "",
    interval: Interval = USUAL,
    made: Provenance | None = None,
) -> None:
    """Write posterior.json, the page, its numbers, and the draws (QUESTION.nc) and intervals (QUESTION.png).

    Args:
        posteriors: by name, of the study's questions or of one formula.
        folder: a new folder.
        study: of the questions; None for a formula.
        title: of the page, if no study has one.
        interval: the kind of interval.
        made: the fit's provenance; None for day and versions only.
    """
    made = made or made_now()
    save_posteriors(posteriors, folder, made)
    shown = shown_of(posteriors, study, title, interval, made)
    for name, section in shown["sections"].items():
        (folder / f"{name}.png").write_bytes(figures.to_png(section["intervals"]))
    (folder / PAGE).write_text(TEMPLATES.get_template("report.html.j2").render(shown), encoding="utf-8")
    (folder / CSV).write_text(csv_of(posteriors, interval), encoding="utf-8")


def shown_of(
    posteriors: Mapping[str, Posterior], study: Study | None, title: str, interval: Interval, made: Provenance
) -> dict[str, Any]:
    """Return the variables of the page's template."""
    largest = max(posteriors.values(), key=lambda posterior: posterior.n)
    return {
        "study": study,
        "title": study.title if study else title or f"Results for {largest.question}",
        "size": largest.size_in_words(),
        "sections": {name: section_of(posterior, study, interval) for name, posterior in posteriors.items()},
        "interval": interval,
        **defence_of(study, posteriors, made),
    }


def section_of(posterior: Posterior, study: Study | None, interval: Interval) -> dict[str, Any]:
    """Return the variables of one posterior's line and section."""
    if study is None:
        text, noise = posterior.formula, list(posterior.noise)
        about = f"{posterior.model}, {posterior.form}"
    else:
        question = study.question(posterior.question)
        mechanism = mechanisms_of(study)[question.id]
        epsilon, delta = float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)
        noise = [f"{explain.in_words(mechanism)} {explain.odds_of(study, epsilon, delta)}"]
        text = question.full_text or question.id
        named = f"{question.id}, " if question.full_text else ""
        about = f"{named}{question.mechanism.name}, {posterior.model}, {posterior.size_in_words()}"
    false = posterior.identified
    levels = "" if interval == USUAL else " (90 %)"
    return {
        "posterior": posterior,
        "text": text,
        "about": about,
        "says": headline(posterior, interval),
        "style": STYLES[posterior.verdict.overall.word],
        "sentences": _sentences([each for each in posterior.quantities if not each.contrast], interval),
        "contrasts": _sentences([each for each in posterior.quantities if each.contrast], interval),
        "rows": rows_of(posterior, interval),
        "false_heading": f"{false.label}{levels}" if false is not None and false.sets else "",
        "intervals": figures.interval_figure(posterior, interval),
        # A single bar says no more than its line of the table.
        "is_one_bar": len(posterior.headlines) + len(posterior.quantities) == 1,
        "law": figures.law_figure(posterior.law) if posterior.law else None,
        "expected": figures.predictive_figure(posterior.predictive) if posterior.predictive else None,
        "densities": figures.density_figure(posterior),
        "method": SAMPLERS[posterior.method].label if posterior.method in SAMPLERS else posterior.method,
        "noise": noise,
        "priors": [line.replace("flat()", "flat") for line in prior_lines(dict(posterior.prior))],
    }


def headline(posterior: Posterior, interval: Interval = USUAL) -> str:
    """Return the numbers that answer the question, in one line without numbers that are not usable."""
    verdict, names = posterior.verdict, list(posterior.headlines)
    usable = [name for name in names if verdict.of(name).word != NOT_USABLE]
    if not usable:
        return "No number."
    if posterior.quantities:
        return " ".join(quantity.sentence(interval) for quantity in posterior.quantities[:MOST_QUOTED])
    if len(usable) > MOST_SAID and posterior.is_share(usable[0]):
        usable.sort(key=lambda name: -posterior.draws[name].mean())
    phrases: list[str] = []
    for name in usable[:MOST_SAID]:
        words, median, ends = posterior.in_words(name, interval)
        phrases.append(f"{words}: {median} ({'' if phrases else f'{interval.name} '}{ends})")
    more = len(usable) - MOST_SAID
    phrases += [f"and {more:,} more below"] if more > 0 else []
    if REFUSED in posterior.draws:
        phrases.append("other shares are among those who say")
    if len(usable) < len(names):
        phrases.append("the others are not usable")
    return f"{'; '.join(phrases)}."


def _sentences(quantities: Sequence[Quantity], interval: Interval) -> list[str]:
    more = len(quantities) - MOST_SENTENCES
    said = [quantity.sentence(interval) for quantity in quantities[:MOST_SENTENCES]]
    return [*said, f"… and {more:,} more in posterior.json."] if more > 0 else said


def rows_of(posterior: Posterior, interval: Interval) -> list[dict[str, Any]]:
    """Return a row of the page's tables for each parameter, with shares in per cent; headlines lead."""
    rows = []
    for name, row in posterior.rows().items():
        words, median, ends = posterior.in_words(name, interval)
        low, high = interval.of(posterior.draws[name])
        share, false = posterior.is_share(name), set_of(posterior.identified, name)
        rows.append({
            "name": words,
            "parameter": name,
            "median": median,
            "interval": ends,
            "if_false": "–" if false is None else between(*false, share),
            "leads": name in posterior.headlines,
            "verdict": posterior.verdict.of(name).word,
            "mean": written(row["mean"], width=high - low),
            "sd": written(row["sd"]),
            "prior_sd": written(posterior.prior_sd[name]),
            "r_hat": f"{row['r_hat']:.3f}",
            "ess_bulk": f"{row['ess_bulk']:.0f}",
            "ess_tail": f"{row['ess_tail']:.0f}",
        })  # fmt: skip
    return sorted(rows, key=lambda row: not row["leads"])


def csv_of(posteriors: Mapping[str, Posterior], interval: Interval = USUAL) -> str:
    """Return CSV with a row for each question's parameters, at full precision; shares not in per cent."""
    text = io.StringIO()
    columns = next(iter(next(iter(posteriors.values())).table(interval).values()))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["question", "model", "n", "parameter", *columns, "if_false_low", "if_false_high"])
    for name, posterior in posteriors.items():
        for parameter, row in posterior.table(interval).items():
            # Spreadsheets evaluate some names as formulas.
            question, label = (no_formula(visible(each)) for each in (name, parameter))
            false = set_of(posterior.identified, parameter) or ("", "")
            writer.writerow([question, posterior.model, posterior.n, label, *row.values(), *false])
    return text.getvalue()
