"""Images, files and sound from one provider's shape to the other's. Pure.

What the other provider has no place for becomes a note in brackets, so that the model knows that
something was there. Data is never written as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from firnline.log.attachment import EncodedBytes, Split
from firnline.log.message import encode_json

Block = dict[str, Any]

_PDF: Final = "application/pdf"


def placeholder_text(part: Mapping[str, Any]) -> str:
    """The text that replaces a part that no provider knows; empty for a known part."""
    kind, file = str(part.get("type")), part.get("file")
    if ":" in kind:  # from an imported chat
        return f"[{kind}]"
    if kind != "file" or not isinstance(file, Mapping):
        return ""
    name = str(file.get("filename") or file.get("file_id") or "")
    known = file.get("file_data") or name.startswith("file-")
    return "" if known else f"[file: {name}]"


# -- to OpenAI's ------------------------------------------------------------------------------


def openai_parts(block: Block) -> Iterator[Block]:
    """An image or a document of Anthropic's or of the Responses API as parts of OpenAI's chat.

    Any other part as it is.
    """
    if block.get("type") in _CHAT_PARTS:
        yield _CHAT_PARTS[block["type"]](block)
        return
    source = block.get("source")
    if block.get("type") not in ("image", "document") or not isinstance(source, dict):
        yield block
        return
    kind, image = source.get("type"), block["type"] == "image"
    inside = f"data:{source.get('media_type')};base64,{source.get('data')}"
    if image and kind in ("base64", "url"):
        yield {"type": "image_url", "image_url": {"url": source.get("url") or inside}}
    elif not image and kind == "base64":
        name = str(block.get("title") or "document.pdf")
        yield {"type": "file", "file": {"filename": name, "file_data": inside}}
    elif not image and kind == "text":
        yield _text(str(source.get("data") or ""))
    elif not image and kind == "content" and source.get("content"):
        content = source["content"]
        for inner in [_text(content)] if isinstance(content, str) else content:
            yield from openai_parts(inner)
    else:
        yield _text(json_text(block))


def _chat_image(part: Block) -> Block:
    url = part.get("image_url")
    if not isinstance(url, str):
        return _text(f"[image: {part.get('file_id') or 'not available'}]")
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _chat_file(part: Block) -> Block:
    names = ("file_id", "file_data", "filename")
    file = {name: part[name] for name in names if part.get(name)}
    if "file_id" in file or "file_data" in file:
        return {"type": "file", "file": file}
    return _text(f"[file: {part.get('file_url') or part.get('filename') or ''}]")


_CHAT_PARTS: Final = {"input_image": _chat_image, "input_file": _chat_file}


def response_parts(block: Block) -> Iterator[Block]:
    """A part of a user's message, of any provider, as parts of the Responses API."""
    if str(block.get("type")).startswith("input_"):
        yield block
        return
    for part in openai_parts(block):
        inner = part.get(str(part.get("type")))
        if part.get("type") == "text":
            yield {"type": "input_text", "text": str(part.get("text") or "")}
        elif part.get("type") == "image_url" and isinstance(inner, Mapping):
            detail = {"detail": inner["detail"]} if inner.get("detail") else {}
            yield {"type": "input_image", "image_url": inner.get("url"), **detail}
        elif part.get("type") == "file" and isinstance(inner, Mapping):
            note = placeholder_text(part)
            yield {"type": "input_text", "text": note} if note else {"type": "input_file", **inner}
        else:
            yield {"type": "input_text", "text": json_text(part)}


def json_text(fields: Block) -> str:
    """A part as JSON, without the data in it."""
    return encode_json(Split.of_fields(fields).rest)


def place_tool_media(messages: Iterable[Block]) -> list[Block]:
    """The messages with what is not text in tools' results after them, in a message of the user.

    OpenAI takes only text in a tool's message.
    """
    found: list[Block] = []
    media: list[Block] = []
    for message in messages:
        if message["role"] != "tool" and media:
            found.append({"role": "user", "content": media})
            media = []
        content = message.get("content")
        if message["role"] == "tool" and isinstance(content, list):
            media += [part for part in content if _is_medium(part)]
            content = [part for part in content if not _is_medium(part)]
            found.append({**message, "content": content or ""})
        else:
            found.append(message)
    return [*found, {"role": "user", "content": media}] if media else found


def _is_medium(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("image_url", "file", "input_audio")


# -- to Anthropic's ---------------------------------------------------------------------------


def anthropic_medium(part: Block) -> Block | None:
    """An image, file or sound of OpenAI's as a block of Anthropic's; None if it is neither."""
    kind = part.get("type")
    inner = part.get(str(kind))
    fields = inner if isinstance(inner, dict) else part
    if kind in ("image_url", "input_image"):
        url = fields.get("url") or part.get("image_url")
        note = _text(f"[image: {fields.get('file_id') or 'not available'}]")
        return {"type": "image", "source": _source(url)} if isinstance(url, str) else note
    if kind in ("file", "input_file") and "source" not in part:
        return _document(fields)
    if kind in ("input_audio", "audio"):
        return _text("[audio]")
    return None


def _document(fields: Block) -> Block:
    name = str(fields.get("filename") or "")
    titled = {"title": name} if name else {}
    data, url = fields.get("file_data"), fields.get("file_url")
    if isinstance(data, str) and data:
        source = _source(data if data.startswith("data:") else f"data:{_PDF};base64,{data}")
        media_type = str(source.get("media_type"))
        if source["type"] == "base64" and media_type.startswith("text/"):
            encoded = EncodedBytes(source["data"])
            text = encoded.read(0, encoded.size).decode(errors="replace")
            source = {"type": "text", "media_type": "text/plain", "data": text}
        if source["type"] == "text" or media_type == _PDF:
            return {"type": "document", "source": source, **titled}
    elif isinstance(url, str) and url:
        return {"type": "document", "source": {"type": "url", "url": url}, **titled}
    return _text(f"[file: {name or fields.get('file_id') or ''}]")


def _source(url: str) -> Block:
    """A URL as a source; what is in a ``data:`` URL, as its data."""
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    head, _, data = url.removeprefix("data:").partition(",")
    media_type = head.partition(";")[0]
    if head.endswith(";base64"):
        return {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "text", "media_type": "text/plain", "data": unquote(data)}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
