"""Find which of 1,000 features crash, from one noisy report per device: for developers of app telemetry.

Run: python examples/telemetry.py. 100,000 devices name one feature each, at ε = 4. Most features hardly
ever crash. A prior that spreads 1,000 shares evenly does not fit that, and `ldpkit.fit` warns about it
(docs/models.md, "When it is not known how many choices are common"). So this example counts the reports
that support each feature, subtracts the support from noise, and names features with more support than
noise would give to any of the 1,000. In 19 of 20 surveys, no feature is named that never crashes. In 19 of
20, all intervals are right at once. Both use the exact binomial distribution of the counts.
"""

import random
import sys
from collections.abc import Iterator
from typing import NamedTuple

from scipy.stats import beta, binom

import ldpkit
from ldp_client.answering import perturb_answers
from ldpkit import Report, Study, Summary, ask

FEATURES, DEVICES, EPSILON = 1000, 100_000, 4
# The error probability per feature (Bonferroni).
WRONG = 0.05 / FEATURES
# Half of the simulated devices name the first feature, a quarter the second, and so on; the rest name any.
CRASHING = (417, 23, 860, 5, 731, 296)


class Named(NamedTuple):
    """A feature, its share of all devices, and the ends of its interval."""

    feature: int
    share: float
    low: float
    high: float


class Counting:
    """Estimate shares from counts of support. least: a count that noise alone reaches in no feature."""

    def __init__(self, study: Study, devices: int) -> None:
        mechanism = ldpkit.mechanisms_of(study)["feature"]
        self.p, self.q, self.devices = float(mechanism.p), float(mechanism.q), devices
        self.least = int(binom.isf(WRONG, devices, self.q)) + 1

    def share(self, supported: float) -> float:
        """Return the share of devices, given the share of reports that support a feature."""
        return (supported - self.q) / (self.p - self.q)

    def named(self, feature: int, count: int) -> Named:
        """Return the feature's share with its Clopper–Pearson interval."""
        low = beta.ppf(WRONG / 2, count, self.devices - count + 1)
        high = beta.isf(WRONG / 2, count + 1, self.devices - count)
        return Named(feature, self.share(count / self.devices), max(0, self.share(low)), self.share(high))


def survey() -> Study:
    """Build the study; ldpkit selects the best mechanism for so many choices."""
    question = ask.choice("feature", FEATURES, epsilon=EPSILON, text="Which feature crashed last?")
    return ldpkit.study("crashes", "Crashes", [question])


def answer(study: Study, devices: int, seed: int) -> Iterator[Report]:
    """Yield one report of each simulated device, made as on a device."""
    mechanisms, truths = ldpkit.mechanisms_of(study), random.Random(seed)
    for _ in range(devices):
        feature = next((one for one in CRASHING if truths.random() < 0.5), truths.randrange(FEATURES))
        yield perturb_answers(study, mechanisms, {"feature": feature})


def stand_out(study: Study, summary: Summary) -> list[Named]:
    """Return the features that noise alone does not explain, the most frequent first."""
    counted = summary.questions["feature"]
    counting = Counting(study, counted.n)
    counts = enumerate(counted.values.tolist())
    named = [counting.named(feature, count) for feature, count in counts if count >= counting.least]
    return sorted(named, key=lambda one: -one.share)


def main(devices: int = DEVICES, seed: int = 3) -> int:
    """Print the smallest share that can be found, and the features found."""
    study = survey()
    counting = Counting(study, devices)
    print(f"{devices:,} devices find features of {counting.share(counting.least / devices):.2%} and more")
    for feature, share, low, high in stand_out(study, ldpkit.summarize(study, answer(study, devices, seed))):
        print(f"feature {feature:3}: {share:6.2%}   {low:.2%} to {high:.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
