"""The command bench: measures how much evidence the memory returns within N tokens.

`bench facts` measures what the rules extract of conversations that are labelled by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from firnline.cli.arguments import Command
from firnline.cli.bench import facts, plot, report
from firnline.cli.bench.cases import BenchCase
from firnline.cli.bench.datasets import FORMATS, load
from firnline.cli.bench.measure import AskMode, BenchRun, measure
from firnline.cli.output import progress_on
from firnline.cli.terminal import plain
from firnline.embedding import default_embedder, open_embedder
from firnline.errors import InputError
from firnline.memory import Memory
from firnline.protocols import Embedder
from firnline.store.files import atomic_write, local_path
from firnline.store.scratch import ScratchFolder

_FACTS: Final = "facts"
_TOKENS: Final = "500,1000,2000,4000"
_WAYS: Final[dict[str, tuple[AskMode, ...]]] = {
    "recall": ("recall",),
    "context": ("context",),
    "both": ("recall", "context"),
}


def _bench(options: argparse.Namespace) -> None:
    if options.format == _FACTS:
        print(plain(facts.report(options.file)))
        return
    tokens = _budgets(options.tokens)
    for path in filter(None, (options.json, options.plot)):
        if not local_path(path).parent.is_dir():  # fail now, not after an hour of work
            raise InputError(f"{path} cannot be written: there is no folder {path.parent}")
    cases = _select_cases(options)
    with _store_url(options.url) as url:
        measured, embedder = asyncio.run(_run(options, cases, tokens, url))
    print(plain(f"{options.format} ({options.file.name}), embedder: {embedder or 'none'}"))
    print(plain(report.text(measured)))
    if options.json:
        about = _about(options, embedder)
        _write(options.json, json.dumps(report.as_json(measured, about), indent=1) + "\n")
    if options.plot:
        title = f"{options.format}: evidence found within N tokens"
        _write(options.plot, plot.draw(measured.tokens, plot.curves(measured), title))


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as half_done:
        half_done.write_text(text, encoding="utf-8")


def _budgets(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) for word in words):
        raise InputError(f"--tokens {text}: expected numbers with commas, such as {_TOKENS}")
    return tuple(sorted({int(word) for word in words}))


def _select_cases(options: argparse.Namespace) -> list[BenchCase]:
    """The conversations and questions of the run."""
    for name in ("conversations", "questions"):
        limit = getattr(options, f"limit_{name}")
        if limit is not None and limit < 1:
            raise InputError(f"--limit-{name} {limit}: must be at least 1")
    cases = load(options.format, options.file, limit=options.limit_conversations)
    if not any(case.questions for case in cases):
        raise InputError(f"{options.file.name}: no question has evidence to look for")
    return [replace(case, questions=case.questions[: options.limit_questions]) for case in cases]


@contextmanager
def _store_url(url: str | None) -> Iterator[str]:
    """The URL of the store: `url`, or a temporary store that is deleted afterwards."""
    if url is not None:
        yield url
        return
    with ScratchFolder() as folder:
        yield f"sqlite:///{folder / 'bench.db'}"


async def _run(
    options: argparse.Namespace, cases: Sequence[BenchCase], tokens: Sequence[int], url: str
) -> tuple[BenchRun, str]:
    """Run the benchmark; returns the result and the name of the embedder."""
    baselines = options.format == "locomo" if options.baselines is None else options.baselines
    embedder = _embedder(options.embedder)
    async with Memory.open(
        url, tenant="bench", worker=False, background=False, embedder=embedder
    ) as memory:
        measured = await measure(
            memory,
            cases,
            tokens,
            ways=_WAYS[options.ask],
            baselines=baselines,
            embedder=embedder,
            watch=progress_on,
        )
    return measured, embedder.name if embedder else ""


def _embedder(name: str) -> Embedder | None:
    """The embedder of the option, for the memory and for the baselines."""
    if name == "none":
        return None
    return default_embedder() if name == "auto" else open_embedder(name)


def _about(options: argparse.Namespace, embedder: str) -> dict[str, Any]:
    about: dict[str, Any] = {"format": options.format, "file": options.file.name}
    if options.file.is_file():
        about["sha256"] = hashlib.sha256(options.file.read_bytes()).hexdigest()
    return {**about, "environment": {"embedder": embedder or None}}


def add(command: Command) -> None:
    """Add this command to the parser."""
    text = (
        "Benchmark recall on a question set, or the extraction of facts on labelled conversations."
    )
    bench = command("bench", _bench, text, store=False)
    bench.add_argument("format", choices=(*FORMATS, _FACTS), help="the format of the file")
    bench.add_argument(
        "file",
        type=Path,
        help="your copy of the question set; may be a folder for realtalk and beam",
    )
    bench.add_argument(
        "--tokens", default=_TOKENS, metavar="N,N,…", help="the budgets (default: %(default)s)"
    )
    bench.add_argument(
        "--ask",
        choices=_WAYS,
        default="recall",
        help="what to ask the memory for (default: %(default)s)",
    )
    bench.add_argument(
        "--baselines",
        action=argparse.BooleanOptionalAction,
        help="also measure plain SQLite searches (default: only for locomo)",
    )
    bench.add_argument(
        "--embedder", default="auto", metavar="NAME", help="auto, none, or a name (default: auto)"
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    bench.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw a chart")
    bench.add_argument(
        "--url", "--store", metavar="URL", help="an empty store to use (default: a temporary one)"
    )
    bench.add_argument(
        "--limit-conversations", type=int, metavar="N", help="use only the first N conversations"
    )
    bench.add_argument(
        "--limit-questions", type=int, metavar="N", help="ask only N questions per conversation"
    )
