"""A conversation as one HTML file: its messages below the digests that cover them.

It has no scripts, pictures, or fonts. Every text is escaped, and the page forbids loading anything,
so that a message cannot run code.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from firnline.digest import items
from firnline.log.entry import Digest, Entry, Head, Topic
from firnline.log.message import Part, encode_json, format_time
from firnline.log.text import Json, plural
from firnline.transfer.formats.markdown import part_label

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #f6f8fa; --sheet: #fff; --ink: #1b2733; --faint: #5b6b7b;
  --line: #d8e0e8; --user: #e3f0fb; --tool: #f1f3f5; --ice1: #4a90c2; --ice2: #2f6f9f;
  --ice3: #1c4f78; }
@media (prefers-color-scheme: dark) { :root { --paper: #0f151b; --sheet: #171f27; --ink: #e3eaf1;
  --faint: #93a4b4; --line: #2b3742; --user: #1c3347; --tool: #1d262e; --ice1: #5fa8dc;
  --ice2: #86c1ea; --ice3: #b3daf5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.all { max-width: 52rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
.facts { color: var(--faint); font-size: .875rem; margin: 0 0 1.75rem; overflow-wrap: anywhere; }
.facts code { font-size: .8rem; }
.digest { border-left: 4px solid var(--ice1); background: var(--sheet);
  border-radius: 0 .5rem .5rem 0; margin: 1rem 0; padding: .75rem 1rem; }
.layer2 { border-left-color: var(--ice2); } .layer3 { border-left-color: var(--ice3); }
.label { color: var(--faint); font-size: .8125rem; margin: 0 0 .35rem; }
.label b { color: var(--ice2); font-weight: 600; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
.known { margin: .6rem 0 0; padding: 0; list-style: none; font-size: .9rem; }
.known li { border-top: 1px solid var(--line); padding: .2rem 0; overflow-wrap: anywhere; }
.known span { color: var(--faint); margin-right: .5rem; }
details { margin-top: .6rem; } summary { cursor: pointer; color: var(--ice2); font-size: .9rem; }
summary:focus-visible { outline: 2px solid var(--ice1); outline-offset: 2px; }
.message { background: var(--sheet); border: 1px solid var(--line); border-radius: .6rem;
  margin: .75rem 0; padding: .6rem .9rem; }
.user { background: var(--user); border-color: transparent; margin-left: 2.5rem; }
.tool, .system, .developer { background: var(--tool); }
.tool .text, .call { font: .85rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.call, .thing { border-top: 1px dashed var(--line); margin: .5rem 0 0; padding-top: .4rem; }
.thing { color: var(--faint); font-size: .9rem; font-style: italic; }
@media (max-width: 40rem) { .user { margin-left: .75rem; } .all { padding-top: 1rem; } }
@media print { details::details-content { content-visibility: visible; } }
"""
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_HASH}'"
_LAYERS: Final = 3
NESTED_MAX: Final = 6
"""Nested digests that are shown; below that, only the messages are."""


def opening(head: Head) -> str:
    """The page up to the first message."""
    named_title = head.metadata.get("title")
    title = escape(named_title if isinstance(named_title, str) and named_title else "")
    shown = title or escape(head.conversation)
    since, until = (format_time(time)[:10] for time in (head.created_at, head.updated_at))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<main class="all">\n<h1>{shown}</h1>\n<p class="facts">'
        f"{escape(head.conversation)} · {plural(head.entries, 'message')} · "
        f"{plural(head.tokens, 'token')} · "
        f"{since} to {until}<br><code>{escape(head.hash)}</code></p>\n"
    )


def closing() -> str:
    """The end of the page."""
    return "</main>\n</body>\n</html>\n"


def render_message(entry: Entry) -> str:
    """One message."""
    message = entry.message
    who = escape(f"{message.role} · {message.name}" if message.name else message.role)
    when = (
        f" · {format_time(message.created_at)[:16].replace('T', ' ')}" if message.created_at else ""
    )
    content = message.content or ()
    shown = [_text(content)] if isinstance(content, str) else map(_part, content)
    calls = (
        f'<p class="call text">→ {escape(call.name)}({escape(call.arguments)})</p>'
        for call in message.tool_calls
    )
    return (
        f'<article class="message {message.role}" id="m{entry.seq}"><p class="label">'
        f"{who} · #{entry.seq}{when} · {plural(entry.tokens, 'token')}</p>"
        f"{''.join(shown)}{''.join(calls)}</article>\n"
    )


def _text(text: str) -> str:
    return f'<p class="text">{escape(text)}</p>'


def _part(part: Part) -> str:
    return (
        _text(part.text) if part.text else f'<p class="thing text">{escape(part_label(part))}</p>'
    )


def digest_opening(digest: Digest) -> str:
    """A digest, up to its first message."""
    below = plural(digest.last_seq - digest.first_seq + 1, "message")
    return f"{_card(digest, _span(digest))}<details><summary>{below} below</summary>\n"


def digest_closing() -> str:
    """The end of a digest."""
    return "</details></section>\n"


def digest_alone(digest: Digest) -> str:
    """A digest whose messages are shown elsewhere."""
    return f"{_card(digest, _span(digest))}</section>\n"


def topics(found: Sequence[tuple[Topic, Digest | None]]) -> Iterator[str]:
    """The topics with their digests."""
    if found:
        yield "<h2>Topics</h2>\n"
    for topic, digest in found:
        label = f"<b>{escape(topic.title)}</b> · {plural(topic.entries, 'message')}"
        if digest is None:
            yield f'<section class="digest"><p class="label">{label}</p></section>\n'
        else:
            yield f"{_card(digest, label)}</section>\n"


def _span(digest: Digest) -> str:
    made = f" · by {escape(digest.made_by)}" if digest.made_by else ""
    return (
        f"<b>Digest {digest.version}</b> · layer {digest.layer} · messages {digest.first_seq} to "
        f"{digest.last_seq} · {plural(digest.tokens, 'token')}{made}"
    )


def _label(item: items.Item) -> str:
    return f"{item.field.replace('_', ' ')} {item.name}".strip()


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else encode_json(value)


def _card(digest: Digest, label: str) -> str:
    layer = min(digest.layer + 1, _LAYERS)
    known = "".join(
        f"<li><span>{escape(_label(item))}</span>{escape(_plain(item.value))}</li>"
        for item in items.items_with_speakers(items.from_json(digest.data))
    )
    data = f'<ul class="known">{known}</ul>' if known else ""
    return (
        f'<section class="digest layer{layer}"><p class="label">{label}</p>'
        f"{_text(digest.text)}{data}"
    )
