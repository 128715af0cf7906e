"""Holds answers against an OpenAPI 3.1 document: each operation and status must be in it, and nothing in an answer that is not."""
import base64
import datetime
import ipaddress
import json
import re
import urllib.parse
import uuid

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
SAYS_NOTHING = {"description", "examples", "title"}
CHECKED = {
    "$ref", "type", "const", "enum", "pattern", "format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "items",
    "prefixItems", "properties", "required", "additionalProperties", "maxProperties", "oneOf", "contentMediaType", "contentSchema",
}


class Wrong(Exception):
    """What does not fit, and where."""


def is_time(text):
    return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text) and datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


FORMATS = {
    "date-time": is_time,
    "uri": lambda text: urllib.parse.urlsplit(text).scheme,
    "email": lambda text: re.fullmatch(r"[^@\s]+@[^@\s]+", text),
    "uuid": uuid.UUID,
    "ipv4": ipaddress.IPv4Address,
}


def segment(text):
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


class Document:
    def __init__(self, path):
        with open(path) as file:
            self.root = json.load(file)
        self.operations = {}
        for path, methods in self.root["paths"].items():
            for method, operation in methods.items():
                self.operations[operation["operationId"]] = (method.upper(), path, operation)
        self.seen = set()
        self.check_closed(self.root["paths"], "paths")
        self.check_closed(self.root["components"], "components")

    def check_closed(self, node, place):
        """Every object says what may be in it, and no schema uses a word that is not checked here."""
        if isinstance(node, list):
            for index, item in enumerate(node):
                self.check_closed(item, f"{place}[{index}]")
        if not isinstance(node, dict):
            return
        if node.get("type") == "object" and node.get("additionalProperties") in (None, True, {}):
            raise Wrong(f"{place}: an object that may hold anything")
        if "type" in node and isinstance(node["type"], (str, list)) and place.rsplit(".", 1)[-1] != "properties":
            unknown = set(node) - CHECKED - SAYS_NOTHING - {"scheme"}
            if unknown and "securitySchemes" not in place:
                raise Wrong(f"{place}: {unknown} are not checked by this test")
        for name, item in node.items():
            self.check_closed(item, f"{place}.{name}")

    def resolve(self, node):
        while "$ref" in node:
            target = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    # Values against schemas

    def check(self, value, schema, place):
        schema = self.resolve(schema)
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number")) for kind in kinds):
            raise Wrong(f"{place}: {value!r} is none of {kinds}")
        if "const" in schema and value != schema["const"]:
            raise Wrong(f"{place}: {value!r} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            raise Wrong(f"{place}: {value!r} is not among {schema['enum']}")
        if "oneOf" in schema:
            self.check_one(value, schema["oneOf"], place)
        if isinstance(value, str):
            self.check_text(value, schema, place)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
                raise Wrong(f"{place}: {value} is out of range")
        if isinstance(value, list):
            self.check_array(value, schema, place)
        if isinstance(value, dict) and "object" in kinds:
            self.check_object(value, schema, place)

    def check_one(self, value, choices, place):
        faults = []
        for choice in choices:
            try:
                self.check(value, choice, place)
            except Wrong as fault:
                faults.append(str(fault))
        if len(faults) != len(choices) - 1:
            raise Wrong(f"{place}: fits {len(choices) - len(faults)} of {len(choices)} schemas: {'; '.join(faults)}")

    def check_text(self, value, schema, place):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            raise Wrong(f"{place}: {value!r} does not match {schema['pattern']}")
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            raise Wrong(f"{place}: {len(value)} characters")
        if "format" in schema:
            try:
                fits = FORMATS[schema["format"]](value)
            except ValueError:
                fits = False
            if not fits:
                raise Wrong(f"{place}: {value!r} is no {schema['format']}")
        if schema.get("contentMediaType") == "application/jwt":
            self.check([segment(part) for part in value.split(".")[:2]], schema["contentSchema"], f"{place}(JWT)")

    def check_array(self, value, schema, place):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            raise Wrong(f"{place}: {len(value)} elements")
        first = schema.get("prefixItems", [])
        for index, item in enumerate(value):
            self.check(item, first[index] if index < len(first) else schema.get("items", {}), f"{place}[{index}]")

    def check_object(self, value, schema, place):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                raise Wrong(f"{place}: {name} is missing")
        if len(value) > schema.get("maxProperties", len(value)):
            raise Wrong(f"{place}: {len(value)} members")
        for name, item in value.items():
            rest = schema.get("additionalProperties", False)
            if name in known:
                self.check(item, known[name], f"{place}.{name}")
            elif isinstance(rest, dict):
                self.check(item, rest, f"{place}.{name}")
            else:
                raise Wrong(f"{place}: {name} is not in the document")

    # Answers against operations

    def hold(self, name, status, headers, body, sent=None):
        """`headers` in lower case; `sent`, the request's body as a value, must fit too where it was taken."""
        operation = self.operations[name][2]
        place = f"{name} {status}"
        if str(status) not in operation["responses"]:
            raise Wrong(f"{place}: not a documented status; {body[:200]!r}")
        response = self.resolve(operation["responses"][str(status)])
        for header, described in response.get("headers", {}).items():
            if header.lower() not in headers:
                raise Wrong(f"{place}: the field {header} is missing")
            self.check(headers[header.lower()], described["schema"], f"{place} {header}")
        content = response.get("content")
        if content is None:
            if body:
                raise Wrong(f"{place}: has a body, {body[:200]!r}")
        else:
            kind = headers.get("content-type", "").split(";")[0]
            if kind not in content:
                raise Wrong(f"{place}: {kind} is not among {list(content)}")
            described = content[kind]
            plain = kind == "text/html" or described.get("x-raw")
            self.check(body.decode() if plain else json.loads(body), described["schema"], place)
        if sent is not None and status < 300:
            for described in operation["requestBody"]["content"].values():
                self.check(sent, described["schema"], f"{place} request")
        self.seen.add((name, str(status)))

    def missing(self):
        wanted = {(name, status) for name, (_, _, operation) in self.operations.items() for status in operation["responses"]}
        return sorted(wanted - self.seen)
