"""Write c/tables.c, the strip tables of exact noise, from the Python sampler: `python c/make_tables.py`."""

from pathlib import Path

from ldp_client.core.strips import Strips, table_of

TABLES = Path(__file__).with_name("tables.c")
HEAD = """/* The strip tables of ldp_client/core/strips.py. Written by c/make_tables.py: do not change. */
#include "internal.h"
"""


def table_text(law: str, strips: Strips) -> str:
    """Return the C definition of one law's table."""
    columns = {
        "limit": [f"{value:#x}" for value in strips.threshold],
        "above": [f"{value:#x}" for value in strips.other_start],
        "sure": [f"{value:#x}" for value in strips.sure],
        "other": [str(value) for value in strips.other],
        "total": [f"{strips.total >> shift & 0xFFFFFFFF:#x}" for shift in range(0, 128, 32)],
    }
    rows = "".join(f"    .{name} = {{\n{_wrapped(values)}    }},\n" for name, values in columns.items())
    return f"\nconst noise_law ldp_{law}_law = {{\n{rows}    .is_laplace = {int(strips.tail)},\n}};\n"


def _wrapped(values: list[str]) -> str:
    rows = [values[start : start + 5] for start in range(0, len(values), 5)]
    return "".join(f"        {', '.join(row)},\n" for row in rows)


def render() -> str:
    """Return the text of tables.c."""
    return HEAD + "".join(table_text(law, table_of(law)) for law in ("laplace", "normal"))


if __name__ == "__main__":
    TABLES.write_text(render(), encoding="utf-8")
