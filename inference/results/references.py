"""The source papers of mechanisms, samplers and checks, as a report cites them."""

from __future__ import annotations

WARNER = (
    "Warner, S. L. (1965). Randomized response: a survey technique for eliminating evasive answer bias. "
    "Journal of the American Statistical Association 60(309), 63–69."
)
KAIROUZ = (
    "Kairouz, P., Oh, S., Viswanath, P. (2014). Extremal mechanisms for local differential privacy. "
    "Advances in Neural Information Processing Systems 27."
)
DWORK = (
    "Dwork, C., McSherry, F., Nissim, K., Smith, A. (2006). Calibrating noise to sensitivity in private data "
    "analysis. Theory of Cryptography, 265–284."
)
BALLE = (
    "Balle, B., Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy: analytical "
    "calibration and optimal denoising. ICML 2018."
)
WANG = (
    "Wang, T., Blocki, J., Li, N., Jha, S. (2017). Locally differentially private protocols for frequency "
    "estimation. USENIX Security 2017."
)
RAPPOR = (
    "Erlingsson, Ú., Pihur, V., Korolova, A. (2014). RAPPOR: randomized aggregatable privacy-preserving "
    "ordinal response. CCS 2014."
)
YE = (
    "Ye, M., Barg, A. (2018). Optimal schemes for discrete distribution estimation under locally "
    "differential privacy. IEEE Transactions on Information Theory 64(8), 5662–5676."
)
ACHARYA = (
    "Acharya, J., Sun, Z., Zhang, H. (2019). Hadamard response: estimating distributions privately, "
    "efficiently, and with little communication. AISTATS 2019."
)
DUCHI = (
    "Duchi, J. C., Jordan, M. I., Wainwright, M. J. (2018). Minimax optimal procedures for locally private "
    "estimation. Journal of the American Statistical Association 113(521), 182–201."
)
KULKARNI = (
    "Kulkarni, T., Jälkö, J., Kaski, S., Honkela, A. (2021). Locally differentially private Bayesian "
    "inference. arXiv:2110.14426."
)
HEIKKILA = (
    "Heikkilä, M., Lagerspetz, E., Kaski, S., Shimizu, K., Tarkoma, S., Honkela, A. (2017). Differentially "
    "private Bayesian learning on distributed data. Advances in Neural Information Processing Systems 30."
)
BERNSTEIN = (
    "Bernstein, G., Sheldon, D. (2019). Differentially private Bayesian linear regression. Advances in "
    "Neural Information Processing Systems 32."
)
ALPARSLAN = (
    "Alparslan, B., Yıldırım, S., Birbil, Ş. İ. (2023). Differentially private distributed Bayesian linear "
    "regression with MCMC. ICML 2023."
)
NUTS = (
    "Hoffman, M. D., Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research 15, "
    "1593–1623."
)
NUMPYRO = (
    "Phan, D., Pradhan, N., Jankowiak, M. (2019). Composable effects for flexible and accelerated "
    "probabilistic programming in NumPyro. arXiv:1912.11554."
)
VEHTARI = (
    "Vehtari, A., Gelman, A., Simpson, D., Carpenter, B., Bürkner, P.-C. (2021). Rank-normalization, "
    "folding, and localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis "
    "16(2), 667–718."
)

# {mechanism: (its name in a paper, its source papers)}.
MECHANISMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "laplace": ("Laplace noise", (DWORK,)),
    "gaussian": ("normal noise, calibrated analytically", (BALLE,)),
    "randomized_response": ("randomized response", (WARNER, KAIROUZ)),
    "oue": ("optimized unary encoding", (WANG,)),
    "sue": ("symmetric unary encoding", (RAPPOR,)),
    "subset_selection": ("subset selection", (YE,)),
    "olh": ("optimized local hashing", (WANG,)),
    "hadamard": ("Hadamard response", (ACHARYA,)),
    "memoized": ("memoized responses", (RAPPOR,)),
    "gaussian_statistics": ("normal noise on products of entries", (KULKARNI, BALLE)),
    "gaussian_record": ("normal noise on the record", (KULKARNI, BALLE)),
    "sampled_products": ("noisy signs of sampled products", (DUCHI,)),
    "summed_gaussian": ("secret shares of a noisy vector", (HEIKKILA, BALLE)),
    "table_statistics": ("normal noise on a table's sums", (BERNSTEIN, ALPARSLAN, BALLE)),
    "table_normal_equations": ("normal noise on a table's sums", (ALPARSLAN, BALLE)),
    "table_statistics_laplace": ("Laplace noise on a table's sums", (BERNSTEIN, DWORK)),
}


def called(mechanism: str) -> str:
    """Return a mechanism's name for a paper; for an added mechanism, its own name."""
    return MECHANISMS[mechanism][0] if mechanism in MECHANISMS else f"the mechanism {mechanism}"


def short(reference: str) -> str:
    """Return the citation in running text: authors and year."""
    authors, _, rest = reference.partition(" (")
    names = [part.strip() for part in authors.split(",")][::2]
    year = rest[:4]
    who = names[0] if len(names) == 1 else " & ".join(names) if len(names) == 2 else f"{names[0]} et al."
    return f"{who} {year}"


def papers(mechanism: str) -> tuple[str, ...]:
    """Return a mechanism's source papers."""
    return MECHANISMS[mechanism][1] if mechanism in MECHANISMS else ()
