"""What a mechanism for tables does to a table, for people."""

from ldp_client.core.quantise import UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.mechanisms.tables.base import TableMechanism


def table_sentences(mechanism: "TableMechanism") -> "list[str]":
    """The clipping, the grouping, the sums and their noise, one sentence each."""
    said = [f"Records are scaled to their bounds, features clipped to norm {mechanism.radius / UNIT:.4g}."]
    if mechanism.average > 1:
        said += [
            f"{mechanism.average} rows at a time are added up, and rows that do not fill a group left out: "
            "the order of rows must not depend on their values."
        ]
    gaussian = mechanism.law == "gaussian"
    said += [
        f"{len(mechanism.coordinates)} sums of products over all records are sent with "
        f"{'Gaussian' if gaussian else 'Laplace'} noise of {'standard deviation' if gaussian else 'scale'} "
        f"{_range(mechanism.noise_scale)}."
    ]
    if mechanism.products:
        said += [
            f"{len(mechanism.products)} sums of products of "
            f"{'three and four' if mechanism.intercept else 'four'} features are sent too, with Laplace "
            f"noise of scale {_range(mechanism.power_noise_scale)}: half of epsilon is spent on them."
        ]
    sd = mechanism.count_noise_sd
    counted = f"sent with noise of standard deviation {sd:.4g}" if sd else "public: it is sent as it is"
    return [*said, f"The number of records is {counted}."]


def _range(numbers: "list[float]") -> str:
    low, high = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
    return low if low == high else f"{low} to {high}"
