"""What holders hold: the paper's real tables, prepared as it did."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Bounds
from benchmarks.ldpbi.data import table

Matrix = NDArray[np.float64]
FILES = {
    "PowerPlant": "power_plant.csv.gz",
    "BikeSharing": "bike_sharing.csv.gz",
    "AirQuality": "air_quality.csv.gz",
    "3droad": "3droad.csv.gz",
}
TRAINED = 0.8


class Table(NamedTuple):
    """Training rows x (n, d) and y (n,); how to score an estimate of θ is for the experiment to say."""

    x: Matrix
    y: Matrix

    @property
    def bounds(self) -> Bounds:
        """The largest norms in the table, as the paper takes them."""
        return Bounds(float(np.linalg.norm(self.x, axis=1).max()), float(np.abs(self.y).max()))

    @property
    def delta(self) -> float:
        """The paper's δ = 1/n."""
        return 1 / len(self.y)

    def split(self, holders: int) -> list[tuple[Matrix, Matrix]]:
        """Equal parts in order, the last one larger by what is left over."""
        starts = np.arange(1, holders) * (len(self.y) // holders)
        return list(zip(np.split(self.x, starts), np.split(self.y, starts), strict=True))


def real(name: str) -> tuple[Table, Table]:
    """Training and test rows: features standardised, y centred and divided by its largest absolute value."""
    columns = table(FILES[name])
    values = np.column_stack([column.astype(float) for column in columns.values()])
    x, y = values[:, :-1], values[:, -1] - values[:, -1].mean()
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    y = y / np.abs(y).max()
    n = int(np.ceil(TRAINED * len(y)))
    return Table(x[:n], y[:n]), Table(x[n:], y[n:])
