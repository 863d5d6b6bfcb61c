"""The shares of candidates behind a RAPPOR collection: cohorts × bits of counts, and a map of candidates.

A report has k bits. Hash functions of its cohort set h bits for its value (a Bloom filter). The permanent
response replaces each bit by a fair coin with probability f; the instantaneous response is 1 with probability
q for a 1 and p for a 0 (Erlingsson, Pihur & Korolova 2014). Both together keep a bit with two known
probabilities, as `memoized` with `"of": "sue"` does for one bit per choice. Counts of bits are taken as
normal, with the covariance of reports that have these shares.
"""

import csv
import hashlib
from collections.abc import Iterator
from functools import partial
from os import PathLike
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray
from scipy.optimize import nnls

from inference.default_priors import EVEN
from inference.fit_model import fields_of, fit_model
from inference.limits import check_sampling
from inference.models import priors_of
from inference.models.base import Draws, Model
from inference.models.shares import Shares, prior_note, pulled
from inference.predictive import MISFIT
from inference.results.fit import Fit
from inference.results.verdict import FALSE_ALARM, FIT, Finding
from inference.samplers import CHAINS, KEPT
from inference.tail_probabilities import squares_beyond
from ldp_client.documents.errors import InputError
from schemas import Study
from schemas.disk import read_bytes

Values = NDArray[np.float64]
File = str | PathLike[str]
# The name of what was collected, and of all values that the map does not list.
VALUE, OTHERS = "value", "(others)"
ROUNDS = 3
ONE_EACH = (
    "each report counts as another person's: if people reported more than once, intervals are too narrow"
)


class Collection(NamedTuple):
    """Counts of reports by cohort and bit, and which bits each candidate sets.

    reports (m,): of each cohort. counts (m, k): of ones. bits (m, k, candidates): 1 where a candidate sets a
    bit. often, seldom: chances that a report has a 1 where its value sets the bit, and where not. hashes: h.
    """

    reports: Values
    counts: Values
    labels: tuple[str, ...]
    bits: Values
    often: float
    seldom: float
    hashes: int


def fit_rappor(
    counts: File,
    candidates: File,
    params: File,
    *,
    others: bool = True,
    concentration: float = 1.0,
    seed: int = 0,
    draws: int = KEPT,
    chains: int = CHAINS,
) -> Fit:
    """Fit the shares of candidates to a RAPPOR collection's files.

    Args:
        counts: a row for each cohort, without a header: its reports, then the ones in each bit.
        candidates: the map, without a header: a string, then the positions of its h bits in each cohort,
            from 1, where cohort c's bits follow those of the cohorts before.
        params: a header k,h,m,p,q,f, and their values.
        others: whether people may have values that the map does not list. These are taken to be many.
        concentration: of the Dirichlet prior, for each candidate; smaller if few of them are common. The
            prior of the others' share is uniform.
        seed: as in `fit`.
        draws: as in `fit`.
        chains: as in `fit`.

    Returns:
        {"value": Posterior}, whose parameters are p[candidate], and p[(others)].

    Raises:
        InputError: a file is not of this form, or two candidates set the same bits.
    """
    check_sampling(seed, draws, chains, "nuts")
    collection = read_rappor(counts, candidates, params)
    model, study = _model_of(collection, others, concentration)
    digest = hashlib.sha256(b"\0".join(read_bytes(file) for file in (counts, candidates, params)))
    question = study.questions[0]
    posterior = fit_model(
        model,
        VALUE,
        int(collection.reports.sum()),
        seed=seed,
        draws=draws,
        chains=chains,
        prior={**priors_of(question), **({"others": EVEN} if others else {})},
        **{**fields_of(study, question), "study_digest": digest.hexdigest()},
    )
    return Fit({VALUE: posterior})


def read_rappor(counts: File, candidates: File, params: File) -> Collection:
    """Read the three files, as `fit_rappor` describes them. Raises InputError."""
    # 1. The parameters.
    header, *rows = _rows(params)
    try:
        (values,) = rows
        (k, h, m), (p, q, f) = map(int, values[:3]), map(float, values[3:])
        often, seldom = (1 - f / 2) * q + f / 2 * p, f / 2 * q + (1 - f / 2) * p
        good = min(k, h, m) > 0 and 0 < often < 1 and 0 < seldom < 1 and often != seldom
    except ValueError:
        good = False
    if not good or [name.strip() for name in header] != list("khmpqf"):
        raise InputError(
            f"{params}: must be a header k,h,m,p,q,f and one row. k, h and m are whole, and p, q and f hide "
            "each bit, and not all of it: p ≠ q and f < 1",
            code="rappor.params",
        )
    # 2. The counts.
    try:
        table = np.array(_rows(counts), np.int64)
        good = table.shape == (m, k + 1) and bool(((table >= 0) & (table <= table[:, :1])).all())
    except (ValueError, OverflowError):
        good = False
    if not good or not table[:, 0].sum():
        raise InputError(
            f"{counts}: needs {m} rows, each its reports, then {k} whole counts from 0 to their number",
            code="rappor.counts",
        )
    # 3. The candidates.
    bits: dict[str, Values] = {}
    for label, *texts in _rows(candidates):
        try:
            # Cells may be empty.
            places = np.array([text for text in texts if text.strip()], np.int64) - 1
            good = len(texts) == h * m and bool(((places >= 0) & (places < m * k)).all())
        except (ValueError, OverflowError):
            good = False
        if not good:
            raise InputError(
                f"{candidates}: {label[:40]!r} needs {h * m} positions from 1 to {m * k}", code="rappor.map"
            )
        one = np.zeros(m * k)
        one[places] = 1
        twin = next((other for other, same in bits.items() if np.array_equal(same, one)), None)
        if twin is not None or label in bits:
            raise InputError(
                f"{candidates}: {label[:40]!r} is there twice, or sets the bits of {(twin or label)[:40]!r}",
                code="rappor.twins",
            )
        # As the collection's own tools name it.
        bits[label or "Empty"] = one
    here = table[:, 0] > 0
    return Collection(
        table[here, 0].astype(np.float64),
        table[here, 1:].astype(np.float64),
        tuple(bits),
        np.stack(list(bits.values()), axis=-1).reshape(m, k, -1)[here],
        often,
        seldom,
        h,
    )


def _rows(file: File) -> list[list[str]]:
    try:
        text = read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8", code="files.not_utf8") from None
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows:
        raise InputError(f"{file} is empty", code="rappor.empty")
    return rows


def covariance_of(collection: Collection, patterns: Values, pairs: Values, shares: Values) -> Values:
    """Return the covariance (m, k, k) of the bits of one report, if values have these shares.

    patterns (m, k, values): chances that a value sets a bit. pairs (k, k): that others set two bits.
    """
    gain = collection.often - collection.seldom
    known = len(collection.labels)
    mean = patterns @ shares
    bits = patterns[..., :known]
    both = np.einsum("mav,mbv->mab", bits * shares[:known], bits) + shares[known:].sum() * pairs
    found = gain**2 * (both - mean[:, :, None] * mean[:, None, :])
    ones = collection.seldom + gain * mean
    index = np.arange(found.shape[-1])
    found[:, index, index] = ones * (1 - ones)
    return np.asarray(found)


def _model_of(collection: Collection, others: bool, concentration: float) -> tuple[Model, Study]:
    # 1. The patterns of values; other values set each bit like many strings, which hash evenly.
    m, k, known = collection.bits.shape
    unset = (1 - 1 / k) ** collection.hashes
    pairs = np.full((k, k), 1 - 2 * unset + max(1 - 2 / k, 0.0) ** collection.hashes)
    spread = np.full((m, k, 1), 1 - unset)
    patterns = np.concatenate([collection.bits, spread], axis=-1) if others else collection.bits
    size = patterns.shape[-1]
    # 2. Whitened counts, linear in the shares, whose covariance follows from an estimate of these.
    shares, roots = np.full(size, 1 / size), np.sqrt(collection.reports)[:, None, None]
    centred = (collection.counts - collection.reports[:, None] * collection.seldom)[..., None] / roots
    expected = (collection.often - collection.seldom) * roots * patterns
    for _ in range(ROUNDS):
        factor = np.linalg.cholesky(covariance_of(collection, patterns, pairs, shares))
        design = np.linalg.solve(factor, expected).reshape(-1, size)
        values = np.linalg.solve(factor, centred).ravel()
        basis, root = np.linalg.qr(design)
        # The last row keeps the sum of the shares near one.
        rows = np.vstack([root, np.full((1, size), 1e3 * np.abs(design).max())])
        target = np.append(basis.T @ values, rows[-1, 0])
        shares = nnls(rows, target)[0]
        shares = (shares + 1e-6) / (shares + 1e-6).sum()
    projected = basis.T @ values
    left, freedom = float(np.sum((values - basis @ projected) ** 2)), len(values) - root.shape[0]
    # 3. The prior of the candidates, as a study states it. The study's mechanism is not read.
    stated = {"p": {"distribution": "dirichlet", "concentration": str(concentration)}}
    asked = {
        "id": VALUE,
        "ask": "choice",
        "choices": list(collection.labels),
        "mechanism": {"name": "randomized_response", "epsilon": "1"},
        "model": {"name": "multinomial", "prior": stated},
    }
    document = {"format": "ldpkit.study/1", "id": "rappor", "version": 1, "title": "RAPPOR"}
    study = Study({**document, "questions": [asked]})
    question = study.questions[0]
    errors = np.linalg.inv(root.T @ root + 1e-9 * np.trace(root.T @ root) / size * np.eye(size))
    answers = (1 / size) * (1 - 1 / size) / float(np.mean(np.diag(errors)))
    prior = Shares(question, shares[:known] / shares[:known].sum(), answers)

    def program(n: int, order: Array, root: Array, values: Array) -> None:
        del n
        candidates = prior.draw(order)
        if others:
            rest = numpyro.sample("others", dist.Beta(1.0, 1.0))
            candidates = jnp.append((1 - rest) * candidates, rest)
        law = dist.Normal(root @ candidates, jnp.ones_like(values)).to_event(1)
        numpyro.sample("reports", law, obs=values)

    def parameters(draws: Draws) -> dict[str, Values]:
        found, rest = prior.parameters(draws), draws.get("others", np.zeros(()))
        told = {name: (1 - rest) * values for name, values in found.items()}
        return {**told, f"p[{OTHERS}]": rest} if others else told

    def misfit(_fit: object) -> Iterator[Finding]:
        """Yield a finding if no shares of these candidates explain the counts."""
        if freedom > 0 and squares_beyond(left, freedom) < FALSE_ALARM:
            words = "check params and map, and for frequent values that the map lacks"
            yield Finding(FIT, f"{MISFIT}: {words}")

    n = int(collection.reports.sum())
    model = Model(
        program,
        {"n": n, "order": prior.order, "root": root, "values": projected},
        {**prior.initial, **({"others": float(shares[-1])} if others else {})},
        parameters,
        (ONE_EACH, *prior_note(question, answers)),
        (partial(pulled, question, answers), misfit),
    )
    return model, study
