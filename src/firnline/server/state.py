"""The parts of a running server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firnline.protocols import Observer
from firnline.server.captures import Captures
from firnline.server.drafts import Drafts
from firnline.server.jobs import Jobs
from firnline.server.keys import Keys
from firnline.server.metrics import Metrics
from firnline.server.proxy.upstream import Upstream
from firnline.server.rate_limit import RateLimiter
from firnline.server.settings import Settings
from firnline.server.span_info import Tracer
from firnline.server.streams import Streams
from firnline.server.telegram.worker import TelegramWorker
from firnline.server.tenants import Tenants

if TYPE_CHECKING:
    from firnline.mcp.endpoint import Endpoint


@dataclass(slots=True)
class Parts:
    """The parts that requests share. `ready` while requests are accepted."""

    settings: Settings
    tenants: Tenants
    keys: Keys
    requests: RateLimiter
    tokens: RateLimiter
    streams: Streams
    drafts: Drafts
    telegram_worker: TelegramWorker
    metrics: Metrics
    observer: Observer
    tracer: Tracer | None = None
    upstream: Upstream | None = None
    anthropic: Upstream | None = None
    jobs: Jobs = field(default_factory=Jobs)
    captures: Captures = field(default_factory=Captures)
    agents: Endpoint | None = None
    ready: bool = False
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    draining: bool = False
