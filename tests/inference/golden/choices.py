"""Golden fits of choices: a report is a set of choices, likelier for each choice within."""

from collections import Counter, namedtuple

import numpy as np
from scipy import special, stats

from tests import studies
from tests.inference.golden.case import Case, approximated, collected, fitted, stated
from tests.inference.golden.reference import Target

# Of many people a noise scale that is 3 % off moves the posterior by more than fits may be off.
FEW, PEOPLE, MANY = 20, 2_000, 40_000
# Mechanisms whose reports the sampler fits.
SAMPLED = ("randomized_response", "oue")
LABELS = studies.CHOICE["choices"]
CONCENTRATION = np.array([1.0, 2.0, 3.0])
BETA = stated("beta", a=2, b=3)
DIRICHLET = stated("dirichlet", concentration=["1", "2", "3"])


def _hash(payload, choices, epsilon):
    """a, b and c of a hash, 4 bytes each, and the hash with noise."""
    a, b, c, told = (int.from_bytes(payload[at : at + 4], "big") for at in (0, 4, 8, 12))
    hashes = int(np.exp(epsilon) + 0.5) + 1
    return [((a * x * x + b * x + c) % (2**31 - 1)) % hashes == told for x in range(choices)]


def _hadamard(payload, choices, epsilon):
    """A block and a column: of choices in that block those whose row has even parity with the column."""
    blocks = max(1, 2 ** int(np.ceil(epsilon / np.log(2)) - 1))
    width = next(2**power for power in range(1, 30) if (2**power - 1) * blocks >= choices)
    block, column = divmod(int.from_bytes(payload, "big"), width)
    rows = [divmod(x, width - 1) for x in range(choices)]
    return [own == block and (row + 1 & column).bit_count() % 2 == 0 for own, row in rows]


def _bits(payload, choices, _):
    return [int.from_bytes(payload, "little") >> x & 1 == 1 for x in range(choices)]


def _single(payload, choices, _):
    return [x == int.from_bytes(payload, "big") for x in range(choices)]


# The choices that each mechanism's payload supports, as docs/payloads.md has it.
SETS = {
    "randomized_response": _single,
    **dict.fromkeys(("oue", "sue", "subset_selection"), _bits),
    "olh": _hash,
    "hadamard": _hadamard,
}


def chances_of(payloads, mechanism, choices):
    """(distinct sets, choices + 1): P(set | answer) but for a factor, and how many reports."""
    name = mechanism.get("of", mechanism["name"])
    epsilon = float(mechanism.get("instantaneous_epsilon", mechanism["epsilon"]))
    sets = Counter(tuple(SETS[name](one, choices, epsilon)) for one in payloads)
    # But for a factor that depends on the set alone, these are all mechanisms' chances.
    weights = 1 + (np.exp(epsilon) - 1) * np.array(list(sets), float)
    return np.column_stack([weights, list(sets.values())])


# Shares of answers: their parameters, P(answer) (points, choices), log prior, and what is compared.
Law = namedtuple("Law", "space shares log_prior quantities", defaults=(dict,))


def named(points):
    return {f"p[{label}]": points["p"][:, place] for place, label in enumerate(LABELS)}


def _with_refusals(points):
    """One more choice, that of refusing; p is of those who answer."""
    p, refused = points["p"], points["refused"]
    return np.column_stack([(1 - refused) * (1 - p), (1 - refused) * p, refused])


def _log_prior_with_concentration(points):
    own, logs = points["concentration"], np.log(points["p"]).sum(axis=1)
    prior = special.gammaln(3 * own) - 3 * special.gammaln(own) + (own - 1) * logs
    return np.asarray(prior + stats.lognorm(0.5, scale=1.0).logpdf(own))


SHARE = Law(
    {"p": "share"},
    lambda points: np.column_stack([1 - points["p"], points["p"]]),
    lambda points: stats.beta(2, 3).logpdf(points["p"]),
)
SHARES = Law(
    {"p": "simplex"},
    lambda points: points["p"],
    lambda points: np.log(points["p"]) @ (CONCENTRATION - 1),
    named,
)
REFUSED = Law(
    {"p": "share", "refused": "share"},
    _with_refusals,
    lambda points: SHARE.log_prior(points) + stats.beta(1, 4).logpdf(points["refused"]),
)
SHARES_AND_CONCENTRATION = Law(
    {"p": "simplex", "concentration": "positive"},
    lambda points: points["p"],
    _log_prior_with_concentration,
    lambda points: {**named(points), "concentration": points["concentration"]},
)


def multinomial(mechanism, **prior):
    model = {"name": "multinomial", "prior": {"p": prior or DIRICHLET}}
    return {**studies.CHOICE, "mechanism": dict(mechanism), "model": model}


WARNER = {"name": "randomized_response", "epsilon": "1"}
BERNOULLI = {**studies.YES_NO, "model": {"name": "bernoulli", "prior": {"p": BETA}}}
REFUSABLE = {
    **BERNOULLI,
    "refusal": True,
    "model": {"name": "bernoulli", "prior": {"p": BETA, "refused": stated("beta", a=1, b=4)}},
}
LEARNT = multinomial(WARNER, **stated("dirichlet", concentration=stated("log_normal", loc=0, scale=0.5)))


def _case(question, law, people=PEOPLE):
    def data():
        answers = [bool(one) for one in np.random.default_rng(1).random(people) < 0.3]
        if question["ask"] == "choice":
            drawn = np.random.default_rng(2).choice(question["choices"], people, p=(0.15, 0.6, 0.25))
            answers = [str(one) for one in drawn]
        if question.get("refusal"):
            refuses = np.random.default_rng(3).random(people) < 0.2
            answers = [None if away else one for one, away in zip(answers, refuses, strict=True)]
        return collected(f"{question['mechanism']['name']} of {question['id']}", question, answers)

    is_sampled = people == PEOPLE and question["mechanism"]["name"] in SAMPLED
    return Case(data, fitted if is_sampled else approximated, of_shares(question, law))


def of_shares(question, law):
    choices = len(question.get("choices", ("no", "yes"))) + bool(question.get("refusal"))

    def target(data):
        table = chances_of(data.payloads(question["id"]), question["mechanism"], choices)

        def log_density(points):
            logs = np.log(table[:, :-1] @ law.shares(points).T)
            return np.asarray(table[:, -1] @ logs + law.log_prior(points))

        return Target(law.space, log_density, law.quantities)

    return target


OF_ONE = ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard")
MULTINOMIALS = {f"multinomial, {name}": multinomial({"name": name, "epsilon": "1"}) for name in OF_ONE} | {
    "multinomial, memoized": multinomial({**studies.KEPT, "of": "sue"})
}
CASES = {
    "bernoulli, randomized_response": _case(BERNOULLI, SHARE),
    "bernoulli, memoized": _case({**BERNOULLI, "mechanism": studies.KEPT}, SHARE),
    "bernoulli with refusals": _case(REFUSABLE, REFUSED),
    **{name: _case(one, SHARES) for name, one in MULTINOMIALS.items()},
    "multinomial of unknown concentration": _case(LEARNT, SHARES_AND_CONCENTRATION),
    "many, bernoulli with refusals": _case(REFUSABLE, REFUSED, MANY),
    "many, multinomial, hadamard": _case(MULTINOMIALS["multinomial, hadamard"], SHARES, MANY),
}


def _default(question, law, people):
    """Few people at ε = 0.01 say so little that the default prior remains, which is uniform."""
    asked = studies.with_epsilon(dict(question), "0.01")
    flat = law._replace(log_prior=lambda points: np.zeros(len(points["p"])))
    return Case(lambda: collected(f"default {asked['id']}", asked, people), fitted, of_shares(asked, flat))


DEFAULTS = {
    "bernoulli": _default(studies.YES_NO, SHARE, [place % 3 == 0 for place in range(FEW)]),
    "multinomial": _default(studies.ONE_OF, SHARES, [LABELS[place % 3] for place in range(FEW)]),
}
