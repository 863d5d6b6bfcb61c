"""Names for annotations of the device core: loading `typing` is slow, and MicroPython has none."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import Callable as Callable
    from typing import Optional as Optional

    Source = Callable[[int], bytes]
else:
    Any = Callable = Optional = Source = object
