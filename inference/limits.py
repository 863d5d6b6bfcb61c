"""Limits of a job: seeds, draws, and the size of simulations. Values beyond them raise InputError."""

from inference.samplers import CHAINS, KEPT, LENGTH, SAMPLERS
from ldp_client.documents.errors import UsageError

# For each chain. With more, thousands of shares would not fit into memory.
MOST_DRAWS = 20_000
# A minute or so for one simulated study.
MOST_DEVICES = 100_000_000
FEWEST_CHAINS, MOST_CHAINS = 2, 64
FEWEST_STUDIES, MOST_STUDIES = 20, 10_000


def check_seed(seed: int) -> None:
    """Raise InputError unless the seed is a whole number from 0 to 2**32 − 1."""
    if type(seed) is not int or not 0 <= seed < 1 << 32:
        raise UsageError("the seed must be a whole number from 0 to 4294967295", code="fit.wrong_seed")


def check_draws(draws: int, method: str) -> None:
    """Raise InputError for an impossible number of draws, or if the method takes none."""
    if type(draws) is not int or draws % LENGTH or not LENGTH <= draws <= MOST_DRAWS:
        raise UsageError(
            f"the draws must be a multiple of {LENGTH} from {LENGTH} to {MOST_DRAWS}",
            code="fit.wrong_draw_count",
        )
    if draws != KEPT and method not in SAMPLERS:
        *others, last = SAMPLERS
        known = f"{', '.join(others)} and {last}"
        raise UsageError(
            f"{method!r} sets its number of draws itself: draws are for {known}",
            code="fit.draws_not_for_method",
        )


def check_chains(chains: int, method: str) -> None:
    """Raise InputError for a number of chains that cannot be compared, or if the method takes none."""
    if type(chains) is not int or not FEWEST_CHAINS <= chains <= MOST_CHAINS:
        raise UsageError(
            f"the chains must be a whole number from {FEWEST_CHAINS} to {MOST_CHAINS}, not {chains!r}: they "
            "are compared with one another",
            code="fit.wrong_chain_count",
        )
    if chains != CHAINS and method not in SAMPLERS:
        raise UsageError(
            f"{method!r} sets its chains itself: leave chains out", code="fit.chains_not_for_method"
        )


def check_sampling(seed: int, draws: int, chains: int, method: str) -> None:
    """Raise InputError for arguments with which no posterior can be drawn."""
    check_seed(seed)
    check_draws(draws, method)
    check_chains(chains, method)


def check_devices(devices: int) -> None:
    """Raise InputError for a number of devices that cannot be simulated."""
    if type(devices) is not int or not 1 <= devices <= MOST_DEVICES:
        raise UsageError(
            f"the numbers of devices must be whole and positive, at most {MOST_DEVICES:,}: beyond it widths "
            "fall by 1/√n",
            code="plan.wrong_device_count",
        )


def check_studies(studies: int) -> None:
    """Raise InputError for a number of simulated studies that is too small to judge, or too large to run."""
    if type(studies) is not int or not FEWEST_STUDIES <= studies <= MOST_STUDIES:
        raise UsageError(
            f"a calibration needs at least {FEWEST_STUDIES} studies, and at most {MOST_STUDIES:,}",
            code="calibrate.wrong_study_count",
        )
