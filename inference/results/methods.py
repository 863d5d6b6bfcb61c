"""The evidence behind a result: methods paragraphs and papers to cite, the software, and the provenance.

They report only the study's statements, the fit's steps and the checks' findings.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import metadata
from math import isfinite
from typing import Any

from inference.results.convergence import MAX_R_HAT, MIN_ESS
from inference.results.identified import FALSE_SHARE
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance
from inference.results.verdict import DROWNED, listed
from inference.samplers import SAMPLERS
from ldp_client import Mechanism, mechanisms_of
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted, rounded_up, visible
from schemas import Question, Study
from schemas.priors import prior_lines
from schemas.shuffling.reports import lines_of, shuffled_privacy

KINDS = {
    "number": "a number", "choice": "one of several choices", "yes_no": "yes or no",
    "record": "several answers together", "table": "a table of records",
}  # fmt: skip
REPEATED = (
    "“{call} --out again --check FOLDER/posterior.json” fits these files again and says whether the result "
    "is the same."
)
NOT_REPEATED = "This result does not come from a call of “ldpkit fit” on files, so no call can repeat it."
PAPERS = {
    "acharya": "Acharya, J., Sun, Z., Zhang, H. (2019). Hadamard response: estimating distributions "
    "privately, efficiently, and with little communication. AISTATS 2019.",
    "alparslan": "Alparslan, B., Yıldırım, S., Birbil, Ş. İ. (2023). Differentially private distributed "
    "Bayesian linear regression with MCMC. ICML 2023.",
    "balle": "Balle, B., Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy: "
    "analytical calibration and optimal denoising. ICML 2018.",
    "bernstein": "Bernstein, G., Sheldon, D. (2019). Differentially private Bayesian linear regression. "
    "Advances in Neural Information Processing Systems 32.",
    "duchi": "Duchi, J. C., Jordan, M. I., Wainwright, M. J. (2018). Minimax optimal procedures for locally "
    "private estimation. Journal of the American Statistical Association 113(521), 182–201.",
    "dwork": "Dwork, C., McSherry, F., Nissim, K., Smith, A. (2006). Calibrating noise to sensitivity in "
    "private data analysis. Theory of Cryptography, 265–284.",
    "erlingsson": "Erlingsson, Ú., Pihur, V., Korolova, A. (2014). RAPPOR: randomized aggregatable "
    "privacy-preserving ordinal response. CCS 2014.",
    "heikkila": "Heikkilä, M., Lagerspetz, E., Kaski, S., Shimizu, K., Tarkoma, S., Honkela, A. (2017). "
    "Differentially private Bayesian learning on distributed data. Advances in Neural Information Processing "
    "Systems 30.",
    "kairouz": "Kairouz, P., Oh, S., Viswanath, P. (2014). Extremal mechanisms for local differential "
    "privacy. Advances in Neural Information Processing Systems 27.",
    "kulkarni": "Kulkarni, T., Jälkö, J., Kaski, S., Honkela, A. (2021). Locally differentially private "
    "Bayesian inference. arXiv:2110.14426.",
    "nuts": "Hoffman, M. D., Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research "
    "15, 1593–1623.",
    "numpyro": "Phan, D., Pradhan, N., Jankowiak, M. (2019). Composable effects for flexible and accelerated "
    "probabilistic programming in NumPyro. arXiv:1912.11554.",
    "vehtari": "Vehtari, A., Gelman, A., Simpson, D., Carpenter, B., Bürkner, P.-C. (2021). "
    "Rank-normalization, folding, and localization: an improved R-hat for assessing convergence of MCMC. "
    "Bayesian Analysis 16(2), 667–718.",
    "wang": "Wang, T., Blocki, J., Li, N., Jha, S. (2017). Locally differentially private protocols for "
    "frequency estimation. USENIX Security 2017.",
    "warner": "Warner, S. L. (1965). Randomized response: a survey technique for eliminating evasive answer "
    "bias. Journal of the American Statistical Association 60(309), 63–69.",
    "ye": "Ye, M., Barg, A. (2018). Optimal schemes for discrete distribution estimation under locally "
    "differential privacy. IEEE Transactions on Information Theory 64(8), 5662–5676.",
}
# {mechanism: (its name in a paper, its source papers)}.
MECHANISMS = {
    "laplace": ("Laplace noise", ["dwork"]),
    "gaussian": ("normal noise, calibrated analytically", ["balle"]),
    "randomized_response": ("randomized response", ["warner", "kairouz"]),
    "oue": ("optimized unary encoding", ["wang"]),
    "sue": ("symmetric unary encoding", ["erlingsson"]),
    "subset_selection": ("subset selection", ["ye"]),
    "olh": ("optimized local hashing", ["wang"]),
    "hadamard": ("Hadamard response", ["acharya"]),
    "memoized": ("memoized responses", ["erlingsson"]),
    "gaussian_statistics": ("normal noise on products of entries", ["kulkarni", "balle"]),
    "gaussian_record": ("normal noise on the record", ["kulkarni", "balle"]),
    "sampled_products": ("noisy signs of sampled products", ["duchi"]),
    "summed_gaussian": ("secret shares of a noisy vector", ["heikkila", "balle"]),
    "table_statistics": ("normal noise on a table's sums", ["bernstein", "alparslan", "balle"]),
    "table_normal_equations": ("normal noise on a table's sums", ["alparslan", "balle"]),
    "table_statistics_laplace": ("Laplace noise on a table's sums", ["bernstein", "dwork"]),
}


def short(paper: str) -> str:
    """Return the citation of a paper in running text: authors and year."""
    authors, _, rest = PAPERS[paper].partition(" (")
    names = [part.strip() for part in authors.split(",")][::2]
    who = names[0] if len(names) == 1 else " & ".join(names) if len(names) == 2 else f"{names[0]} et al."
    return f"{who} {rest[:4]}"


def defence_of(study: Study | None, posteriors: Mapping[str, Posterior], made: Provenance) -> dict[str, Any]:
    """Return the methods, papers, citation and provenance of a fit, for the page.

    Args:
        study: whose questions were fitted; None for a formula.
        posteriors: by name.
        made: the fit's provenance.

    Returns:
        The variables `methods`, `papers`, `citation`, `provenance` and `repeat`.
    """
    fitted = list(posteriors.values())
    # 1. State the privacy and the models.
    if study is None:
        methods = []
        for posterior in fitted:
            priors = "; ".join(prior_lines(dict(posterior.prior))).replace("flat()", "flat")
            under = f", under the priors {priors}" if priors else ""
            methods += [
                f"“{visible(posterior.formula)}” was fitted to {posterior.size_in_words()} as "
                f"{posterior.model}, with a likelihood that includes the noise{under}.",
                *posterior.noise,
            ]
        about = {"Digest of the input": fitted[0].study_digest}
    else:
        methods = [_privacy(study), *_shuffled_privacy(study, [posterior.n for posterior in fitted])]
        methods += [_question(study, study.question(posterior.question), posterior) for posterior in fitted]
        about = {"Study": f"{study.id}, version {study.version}", "Digest of the study": study.digest}
    # 2. State the draws of each method, and the checks.
    for method in dict.fromkeys(posterior.method for posterior in fitted):
        methods.append(_sampled(method, [each for each in fitted if each.method == method], made))
    methods.append(_checks(fitted))
    # 3. Cite the software, and name the files.
    package = metadata("ldpkit")
    return {
        "methods": methods,
        "papers": sorted(PAPERS[paper] for paper in PAPERS if short(paper) in " ".join(methods)),
        "citation": "The ldpkit developers. ldpkit: local differential privacy with honest posteriors "
        f"(version {package['Version']}, {package['License-Expression']} licence) [software].",
        "provenance": list(_provenance(about, fitted[0].seed, made)),
        "repeat": REPEATED.format(call=visible(made.call)) if made.call else NOT_REPEATED,
    }


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
    # A file of answers may have been perturbed, which its reports do not show.
    unless = "" if holders else " (an analyst who perturbed a file of answers knows those answers)"
    how = "all questions together are"
    if study.sample_one_question:
        how = "each device answers one question, drawn by chance; that is"
    return (
        f"{which} noise is added to every answer {where} before anything is sent{unless}; {how} "
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
        lines = lines_of(study, shuffled_privacy(study, max(1, int(people * (1 - FALSE_SHARE)))))
    except InputError:
        # No bound is certified for noise with a δ.
        return []
    return [" ".join(lines)]


def _delta(delta: Any) -> str:
    return f"δ = {rounded_up(float(delta), 2)}"


def noise_of(mechanism: Mechanism) -> str:
    """Return a mechanism's name in a paper, with its source papers, its ε and its δ."""
    # An added mechanism has its own name.
    called, papers = MECHANISMS.get(mechanism.name, (f"the mechanism {mechanism.name}", []))
    sources = f" ({'; '.join(map(short, papers))})" if papers else ""
    delta = f" and {_delta(mechanism.privacy.delta)}" if float(mechanism.privacy.delta) else ""
    return f"{called}{sources} with ε = {rounded_up(float(mechanism.privacy.epsilon), 6)}{delta}"


def _question(study: Study, question: Question, posterior: Posterior) -> str:
    priors = listed(prior_lines(dict(posterior.prior)))
    text = f"“{visible(question.full_text)}” ({question.id})" if question.full_text else question.id
    size = posterior.size_in_words()
    false = posterior.identified
    return (
        f"{text} asked for {KINDS.get(question.ask, question.ask)}, under "
        f"{noise_of(mechanisms_of(study)[question.id])}. "
        f"{size[0].upper()}{size[1:]} were fitted with the model "
        f"{posterior.model}, whose likelihood includes the noise"
        f"{f', under the priors {priors}' if priors else ''}. Verdict: {posterior.verdict.overall}."
    ).replace("1 report were", "1 report was") + (
        f" Possible values {false.condition} are given next to the intervals." if false and false.sets else ""
    )


def _sampled(method: str, posteriors: Sequence[Posterior], made: Provenance) -> str:
    label = SAMPLERS[method].label if method in SAMPLERS else f"the published method {method}"
    source = f" ({short('nuts')})" if label == "NUTS" else ""
    shapes = {next(iter(posterior.draws.values())).shape for posterior in posteriors}
    sizes = listed(sorted(f"{counted(chains, 'chain')} of {kept:,} kept draws" for chains, kept in shapes))
    numpyro = f"NumPyro {made.versions['numpyro']} ({short('numpyro')}) and " if method in SAMPLERS else ""
    return (
        f"Posteriors of {listed([posterior.question for posterior in posteriors])} were drawn by "
        f"{label}{source} with {numpyro}ldpkit {made.versions['ldpkit']}: {sizes}, seed {posteriors[0].seed}."
    )


def _checks(posteriors: Sequence[Posterior]) -> str:
    rows = [row for each in posteriors for row in each.rows().values() if isfinite(row["r_hat"])]
    measured = (
        f" (here at most {max(row['r_hat'] for row in rows):.3f}, at least "
        f"{min(row['ess_bulk'] for row in rows):,.0f} and {min(row['ess_tail'] for row in rows):,.0f})"
        if rows
        else ""
    )
    return (
        f"Draws were called good with rank-normalised R-hat of at most {MAX_R_HAT}, and bulk and tail "
        f"effective sample sizes of at least {MIN_ESS:.0f} ({short('vehtari')}){measured}; a model, where "
        "replicated reports, and the laws that noise alone gives, did not speak against it; a parameter as "
        f"learnt where its posterior's standard deviation is at most {DROWNED:g} of its prior's."
    )


def _provenance(about: Mapping[str, str], seed: int, made: Provenance) -> Iterator[tuple[str, str]]:
    """Yield (label, value) pairs; two files may have the same name."""
    known = {"ldpkit": "ldpkit", "numpyro": "NumPyro", "jax": "JAX", "numpy": "NumPy", "python": "Python"}
    versions = [f"{name} {made.versions[key]}" for key, name in known.items() if key in made.versions]
    versions += [made.versions["platform"]] if "platform" in made.versions else []
    yield from (("Fitted on", made.day), ("With", ", ".join(versions)), *about.items())
    for file in made.inputs:
        digest = f"SHA-256 {file.sha256}" if file.sha256 else "a stream: it has no digest"
        yield f"Read: {visible(file.name)}", digest
    yield "Seed", str(seed)
