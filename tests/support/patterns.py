"""Every regular expression of the package, how it is used, and texts that are hard for it."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, Final, NamedTuple

import firnline
from firnline.log.regex import _Regex

_ROOT: Final = Path(firnline.__file__).parent
_METHODS: Final = frozenset({"search", "match", "fullmatch", "findall", "finditer", "sub", "split"})
_ANYWHERE: Final = _METHODS - {"match", "fullmatch"}
_PIECES_MAX: Final = 30
_LEADS_MAX: Final = 16
_PIECES_EACH: Final = 4
_BETWEEN: Final = (" ", "", "\n", "a ", ". ")
_ALL: Final = ("finditer", "fullmatch", "match")
_DEPTH: Final = 4
_FRAMEWORKS: Final = "firnline.adapters"  # some are not installed; they have no expressions


class UsedPattern(NamedTuple):
    """An expression, the module that has it, and the methods that are called on it."""

    where: str
    pattern: re.Pattern[Any]
    ways: tuple[str, ...]


class HardText(NamedTuple):
    """A beginning, a piece that is repeated, and an end."""

    start: str
    piece: str
    end: str

    def of(self, chars: int) -> str:
        """The text with about so many characters."""
        return self.start + self.piece * max(1, chars // len(self.piece)) + self.end


def used_patterns() -> list[UsedPattern]:
    """Every expression of the package: those made by `regex`, and those passed to `re`."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages([str(_ROOT)], "firnline.")
        if not module.name.startswith(_FRAMEWORKS) and not module.name.endswith("__main__")
    ]
    sources = {module.__name__: Path(module.__file__ or "").read_text() for module in modules}
    found = []
    seen: set[int] = set()
    for module in modules:
        for name, value in vars(module).items():
            for lazy in _held(value):
                if id(lazy) not in seen:
                    seen.add(id(lazy))
                    called = _called if lazy is value else _called_of_each
                    ways = _ways(called(name, module.__name__, sources))
                    found.append(UsedPattern(f"{module.__name__}.{name}", lazy._compiled(), ways))
    for module in modules:
        found += _passed(module, sources[module.__name__])
    return found


def _held(value: object, depth: int = 0) -> Iterator[_Regex]:
    """The expressions in a value of a module, such as a list of rules."""
    if isinstance(value, _Regex):
        yield value
    elif isinstance(value, dict | tuple | list | set | frozenset) and depth < _DEPTH:
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _held(each, depth + 1)


def _called(name: str, module: str, sources: Mapping[str, str]) -> set[str]:
    """The methods that are called on a module's expression; a private one only there."""
    text = sources[module] if name.startswith("_") else "\n".join(sources.values())
    return set(re.findall(rf"\b{name}\.(\w+)", text)) & _METHODS


def _called_of_each(name: str, module: str, sources: Mapping[str, str]) -> set[str]:
    """The methods that are called on a collection's expressions; none if any use is another."""
    tree = ast.parse(sources[module])
    uses = sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(tree)
    )
    called = [
        method
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (found := re.fullmatch(rf"{name}\[[^]]+\]\.(\w+)", ast.unparse(node.func)))
        and (method := found[1]) in _METHODS
    ]
    return set(called) if name.startswith("_") and len(called) == uses else set()


def _ways(called: Iterable[str]) -> tuple[str, ...]:
    """`finditer` does all that the other methods do which search everywhere."""
    ways = {name if name in ("match", "fullmatch") else "finditer" for name in called}
    return tuple(sorted(ways)) or _ALL


def _passed(module: ModuleType, source: str) -> Iterator[UsedPattern]:
    """The expressions that are passed to `re.search` and the like."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[first, *_]
            ) if method in _METHODS:
                with suppress(NameError):  # it depends on an argument
                    expression = eval(ast.unparse(first), dict(vars(module)))
                    where = f"{module.__name__}:{node.lineno}"
                    yield UsedPattern(where, re.compile(expression), _ways([method]))


# -- texts ------------------------------------------------------------------------------------

_GENERIC: Final = (
    "a", "A", " ", "\n", "0", "1,", "A ", "a.", "_session_", "[recalled]\n", '"', "'", "’s ", "(",
    "[", "{", "<", "/", "\\", "-", ".", ":", ", ", "a@", "@", "http://", "`", "```\n", "I ",
    "не ", "世", "世界。", "the ", " and ", "1/2 ", "2024-", "12:", "\r\n", "\t", "é", "ẞ", "No, ",
    "a b. ", "x: ", "“", "”", "=", "%", "&", "#", "*", "|", "\u00a0", "\u2028", "🙂", "aA", "Aa0_",
)  # fmt: skip


def hard_texts(pattern: re.Pattern[Any]) -> Iterator[HardText]:
    """Texts made of the expression's own parts, and some that are hard for many expressions."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    sample = _sample(tree)
    leads = dict.fromkeys(filter(None, (*_leads(tree), sample, sample[:-1], sample[1:])))
    pieces = dict.fromkeys(filter(None, _pumped(tree)))
    kinds = (
        _led(_spread(leads, _LEADS_MAX), _spread(pieces, _PIECES_EACH)),
        (HardText("", piece, "\0") for piece in _spread(pieces, _PIECES_MAX)),
        (HardText("", piece, "") for piece in _GENERIC),
    )
    # In turns, so that a test that stops after a while has tried some of each kind.
    yield from filter(None, chain.from_iterable(zip_longest(*kinds)))


def _led(leads: Iterable[str], pieces: Sequence[str]) -> Iterator[HardText]:
    for more in _BETWEEN:
        for lead in leads:
            yield HardText("", lead + more, "\0")
    for piece in pieces:
        for lead in leads:
            yield HardText(lead, piece, "\0")
            yield HardText("", lead + piece, "\0")


def _spread(texts: Iterable[str], most: int) -> list[str]:
    """At most so many of the texts, from all of them."""
    every = list(texts)
    return every[:: max(1, -(-len(every) // most))]


def _children(op: Any, value: Any) -> list[Any]:
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]
    if op is sre.SUBPATTERN:
        return [value[-1]]
    if op is sre.ATOMIC_GROUP:
        return [value]
    if op is sre.BRANCH:
        return list(value[1])
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if op is sre.GROUPREF_EXISTS:
        return [each for each in value[1:] if each is not None]
    return []


def _pumped(tree: Any) -> Iterator[str]:
    """One text for each thing that is repeated, and for two that follow each other."""
    last = ""
    for op, value in tree:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            piece = _sample(value[2])
            yield piece
            yield from _members(value[2])
            if last:
                yield last + piece
            last = piece
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            continue
        else:
            last = _sample([(op, value)])
        for child in _children(op, value):
            yield from _pumped(child)


def _members(tree: Any) -> Iterator[str]:
    """Several members of a class that is repeated."""
    for op, value in tree:
        if op is sre.IN:
            for item in value[:4]:
                if char := _of_class([item]):
                    yield char
        elif op is sre.BRANCH:
            for branch in value[1][:6]:
                yield _sample(branch)


def _leads(tree: Any) -> Iterator[str]:  # noqa: C901 - a case for each kind of node
    """The texts that come before each repetition."""
    sample = ""
    for op, value in tree:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield sample
        if op is sre.BRANCH:
            for branch in value[1]:
                yield sample + _sample(branch)
                for lead in _leads(branch):
                    yield sample + lead
        elif op not in (sre.ASSERT, sre.ASSERT_NOT):
            for child in _children(op, value):
                for lead in _leads(child):
                    yield sample + lead
        if op not in (sre.ASSERT, sre.ASSERT_NOT):
            sample += _sample([(op, value)])


_CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: "7",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


def _of_class(items: Any) -> str:
    """A character of the class."""
    negated = bool(items) and items[0][0] is sre.NEGATE
    if negated:
        return next((c for c in "aA7 -.,é世\n" if not _is_in(c, items[1:])), "☃")
    for op, value in items:
        if op is sre.LITERAL:
            return chr(value)
        if op is sre.RANGE:
            return chr(value[0])
        if op is sre.CATEGORY:
            return _CATEGORIES[value]
    return ""


def _is_in(char: str, items: Any) -> bool:
    for op, value in items:
        if op is sre.LITERAL and chr(value) == char:
            return True
        if op is sre.RANGE and value[0] <= ord(char) <= value[1]:
            return True
        if op is sre.CATEGORY:
            name = str(value).removeprefix("CATEGORY_").lower()
            code = {"digit": r"\d", "space": r"\s", "word": r"\w"}.get(
                name, {"not_digit": r"\D", "not_space": r"\S", "not_word": r"\W"}.get(name)
            )
            if code and re.match(code, char):
                return True
    return False


def _sample(tree: Any) -> str:  # noqa: C901 - the same
    """A text that matches, or nearly."""
    text = ""
    for op, value in tree:
        if op is sre.LITERAL:
            text += chr(value)
        elif op is sre.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif op is sre.ANY:
            text += "a"
        elif op is sre.IN:
            text += _of_class(value)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * min(max(value[0], 1), 20)
        elif op is sre.BRANCH:
            text += _sample(value[1][0])
        elif op in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            text += _sample(value[-1] if op is sre.SUBPATTERN else value)
    return text
