"""The reference of the API as a page at ``/docs``: the OpenAPI document, readable. Pure.

It has no script and loads nothing: any browser shows it, without a network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_OTHER: Final = "other"
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; text-transform: capitalize; }
code, pre { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; }
details { padding: .4rem .8rem; }
summary { cursor: pointer; } summary b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; }
td:first-child { white-space: nowrap; }
tr { border-bottom: 1px solid var(--line); }
nav a { margin-right: 1rem; white-space: nowrap; text-transform: capitalize; }
"""
_HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: the API</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
"""
_HOW: Final = """
<p>For programs: <a href="/openapi.json">openapi.json</a>. In the examples, <code>$FIRNLINE</code>
is the address of this server. From another machine, add
<code>-H "Authorization: Bearer $KEY"</code> with an API key.</p>
"""
POLICY: Final = (
    "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; style-src"
    f" 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
)


def render_reference(document: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document."""
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if (operation := methods.get(method)) is not None:
                group = next(iter(operation.get("tags") or (_OTHER,)))
                shown = "".join(_operation(method, path, operation))
                groups.setdefault(group, []).append(shown)
    about = document["info"]
    title = f"{escape(about['title'])} {escape(about['version'])}"
    schemas = document.get("components", {}).get("schemas", {})
    names = map(escape, (*groups, "types"))
    links = "".join(f'<a href="#group-{name}">{name}</a>' for name in names)
    parts = (
        _HEAD.format(title=title, style=_STYLE),
        _paragraphs(about.get("description", "")),
        _HOW,
        f"<nav>{links}</nav>",
        *(_group(name, "".join(shown)) for name, shown in groups.items()),
        _group("types", "".join(_schema(name, schemas[name]) for name in sorted(schemas))),
        "</body></html>",
    )
    return "".join(parts)


def _group(name: str, shown: str) -> str:
    return f'<h2 id="group-{escape(name)}">{escape(name)}</h2>{shown}'


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    summary = escape(operation.get("summary", ""))
    name = escape(operation.get("operationId", f"{method} {path}"))
    yield f'<details id="{name}"><summary><b>{method.upper()}</b> <code>{escape(path)}</code> '
    yield f"{summary}</summary>{_paragraphs(operation.get('description', ''))}"
    yield _table(
        ("parameter", "in", "type", ""),
        (
            (_code(row["name"]), escape(row["in"]), _type(row.get("schema", {})), _note(row))
            for row in operation.get("parameters", ())
        ),
    )
    bodies = operation.get("requestBody", {}).get("content", {})
    answers = operation.get("responses", {}).items()
    yield _table(("body", "type"), ((_code(kind), _content(one)) for kind, one in bodies.items()))
    yield _table(
        ("answer", "", "type"),
        (
            (
                _code(status),
                _text(answer.get("description", "")),
                ", ".join(map(_content, answer.get("content", {}).values())),
            )
            for status, answer in answers
        ),
    )
    yield f"<pre>{escape(_example(method, path, bodies))}</pre></details>"


def _example(method: str, path: str, bodies: Mapping[str, Any]) -> str:
    """The request as a command."""
    line = f'curl -X {method.upper()} "$FIRNLINE{path}"'
    for kind, content in bodies.items():
        line += f" \\\n  -H 'Content-Type: {kind}'"
        if (example := _body_example(content)) is not None:
            line += f" \\\n  -d '{json.dumps(example, ensure_ascii=False)}'"
        break
    return line


def _body_example(content: Mapping[str, Any]) -> Any:
    examples: dict[str, Any] = content.get("examples") or {}
    first: dict[str, Any] = next(iter(examples.values()), {})
    return content.get("example", first.get("value"))


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    needed = set(schema.get("required", ()))
    fields = _table(
        ("field", "type", ""),
        (
            (_code(field) + " *" * (field in needed), _type(one), _note(one))
            for field, one in schema.get("properties", {}).items()
        ),
    )
    what = fields or f"<p>{_type(schema)}</p>"
    about = _paragraphs(schema.get("description", ""))
    return (
        f'<details id="type-{escape(name)}"><summary>{_code(name)}</summary>{about}{what}</details>'
    )


def _content(content: Mapping[str, Any]) -> str:
    return _type(content.get("schema", {}))


def _type(schema: Mapping[str, Any]) -> str:
    """A type in words, with links to the named ones."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#type-{name}">{name}</a>'
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[several])))
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(_code(json.dumps(value)) for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type") or "any"))


def _note(row: Mapping[str, Any]) -> str:
    schema = row.get("schema", row)
    facts = [_text(str(row.get("description") or schema.get("description") or ""))]
    if schema.get("default") is not None:
        facts.append(f"Default: {_code(json.dumps(schema['default'], ensure_ascii=False))}.")
    limits = [
        f"{text} {schema[name]:,}"
        for name, text in (("minimum", "at least"), ("maximum", "at most"))
        if isinstance(schema.get(name), int)
    ]
    facts += [f"({', '.join(limits)})"] * bool(limits)
    return " ".join(filter(None, facts))


def _table(names: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    if not lines:
        return ""
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text(part)}</p>" for part in text.strip().split("\n\n") if part)


def _text(text: str) -> str:
    """Prose; what is between backticks is code."""
    parts = text.split("`")
    closed = len(parts) % 2 == 1
    return "".join(
        _code(part) if closed and number % 2 else escape(part) for number, part in enumerate(parts)
    )


def _code(text: object) -> str:
    return f"<code>{escape(str(text))}</code>"
