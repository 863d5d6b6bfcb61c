"""Lists and objects that documents are made of: tables of fields, each with its shape."""

from collections.abc import Callable
from typing import Any

from ldp_client.documents.fields import Error, Identifier, printable

KEY = Identifier()


class ListOf:
    """A list of `fewest` to `most` items of one shape. Keys must be unique unless `repeats` is true."""

    def __init__(
        self, item: Any, fewest: int, most: int, unique_by: str | None = None, repeats: bool = False
    ) -> None:
        self.item = item
        self.repeats = repeats
        self.fewest = fewest
        self.most = most
        self.unique_by = unique_by

    def read(self, value: Any, path: str, error: Error) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise error(path, "must be a list")
        if not self.fewest <= len(value) <= self.most:
            raise error(path, f"must have {self.fewest} to {self.most} entries, has {len(value)}")
        items = [self.item.read(entry, f"{path}[{index}]", error) for index, entry in enumerate(value)]
        seen = set()
        for index, item in enumerate(() if self.repeats else items):
            key = item[self.unique_by] if self.unique_by else item
            if key in seen:
                suffix = f".{self.unique_by}" if self.unique_by else ""
                raise error(f"{path}[{index}]{suffix}", f"{printable(key)} occurs twice")
            seen.add(key)
        return tuple(items)

    def json_schema(self) -> dict[str, Any]:
        schema = {
            "type": "array",
            "items": self.item.json_schema(),
            "minItems": self.fewest,
            "maxItems": self.most,
        }
        if not self.unique_by and not self.repeats:
            schema["uniqueItems"] = True
        return schema


class MapOf:
    """An object with 1 to `most` values of one shape, each under an identifier."""

    def __init__(self, item: Any, most: int) -> None:
        self.item = item
        self.most = most

    def read(self, value: Any, path: str, error: Error) -> dict[str, Any]:
        if not isinstance(value, dict) or not 1 <= len(value) <= self.most:
            raise error(path, f"must be an object with 1 to {self.most} values")
        found = {}
        for key in value:
            KEY.read(key, f"{path}.{printable(key)}", error)
            found[key] = self.item.read(value[key], f"{path}.{key}", error)
        return found

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "propertyNames": KEY.json_schema(),
            "additionalProperties": self.item.json_schema(),
            "minProperties": 1,
            "maxProperties": self.most,
        }


class Record:
    """An object with exactly these fields; `optional` fields may be missing, and are then read as None."""

    def __init__(self, required: dict[str, Any], optional: dict[str, Any] | None = None) -> None:
        self.required = required
        self.optional = optional or {}

    def read(self, value: Any, path: str, error: Error) -> dict[str, Any]:
        prefix, fields = path + "." if path else "", {**self.required, **self.optional}
        if not isinstance(value, dict):
            raise error(path, "must be an object")
        for key in value:
            if key not in fields:
                known = ", ".join(sorted(self.required) + sorted(self.optional))
                raise error(prefix + printable(key), f"unknown field; known are {known}")
        for key in self.required:
            if key not in value:
                raise error(prefix + key, "is missing")
        return {
            key: shape.read(value[key], prefix + key, error) if key in value else None
            for key, shape in fields.items()
        }

    def json_schema(self) -> dict[str, Any]:
        fields = {**self.required, **self.optional}
        return {
            "type": "object",
            "properties": {key: fields[key].json_schema() for key in fields},
            "required": sorted(self.required),
            "additionalProperties": False,
        }


class Tagged:
    """An object whose field `tag` selects one of several records.

    `fits`: the names allowed here, if not all known names are; `here` describes the place in words.
    """

    def __init__(
        self, tag: str, variants: dict[str, Any], fits: list[str] | None = None, here: str = ""
    ) -> None:
        self.tag = tag
        self.variants = variants
        self.fits = sorted(variants) if fits is None else sorted(fits)
        self.here = here

    def read(self, value: Any, path: str, error: Error) -> Any:
        if not isinstance(value, dict):
            raise error(path, "must be an object")
        where = f"{path}.{self.tag}" if path else self.tag
        if self.tag not in value:
            raise error(where, "is missing")
        name = value[self.tag]
        if not isinstance(name, str) or name not in self.variants:
            raise error(
                where, f"{printable(name)!r} is unknown; known are {', '.join(sorted(self.variants))}"
            )
        if name not in self.fits:
            raise error(where, f"{name!r} does not fit {self.here}; {', '.join(self.fits)} would")
        return self.variants[name].read(value, path, error)

    def json_schema(self) -> dict[str, Any]:
        return {"oneOf": [self.variants[name].json_schema() for name in self.fits]}


class Either:
    """One of several shapes: an object has the shape that `of_object` returns, all else the first shape."""

    def __init__(self, of_object: Callable[[dict[str, Any]], Any], *shapes: Any) -> None:
        self.of_object = of_object
        self.shapes = shapes

    def read(self, value: Any, path: str, error: Error) -> Any:
        shape = self.of_object(value) if isinstance(value, dict) else self.shapes[0]
        return shape.read(value, path, error)

    def json_schema(self) -> dict[str, Any]:
        return {"oneOf": [shape.json_schema() for shape in self.shapes]}
