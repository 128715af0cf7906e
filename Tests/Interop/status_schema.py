#!/usr/bin/env python3
"""status_schema.py SCHEMA DOCUMENT: checks a JSON document against the parts of JSON Schema that docs/status.schema.json uses."""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def check(value, schema, path, root):
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[kind]) and (kind != "integer" or not isinstance(value, bool)) for kind in kinds):
        raise SystemExit(f"{path}: {value!r} is none of {kinds}")
    if "const" in schema and value != schema["const"]:
        raise SystemExit(f"{path}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        raise SystemExit(f"{path}: {value!r} is not among {schema['enum']}")
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        raise SystemExit(f"{path}: {value!r} does not match {schema['pattern']}")
    if isinstance(value, int) and value < schema.get("minimum", value):
        raise SystemExit(f"{path}: {value!r} is less than {schema['minimum']}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            check(item, schema["items"], f"{path}[{index}]", root)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                raise SystemExit(f"{path}: {name} is missing")
        for name, item in value.items():
            rest = schema.get("additionalProperties", True)
            if name in known:
                check(item, known[name], f"{path}.{name}", root)
            elif rest is False:
                raise SystemExit(f"{path}: {name} is not in the schema")
            elif isinstance(rest, dict):
                check(item, rest, f"{path}.{name}", root)


with open(sys.argv[1]) as schema_file, open(sys.argv[2]) as document_file:
    schema, document = json.load(schema_file), json.load(document_file)
check(document, schema, "$", schema)
