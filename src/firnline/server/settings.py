"""The server's settings: environment variables (``FIRNLINE_…``) or a TOML file, checked at startup.

The library itself takes arguments; only the server reads the environment.
"""

from __future__ import annotations

import ipaddress
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from firnline.errors import InputError
from firnline.log import limits
from firnline.server.telegram.settings import BotSettings
from firnline.store.files import local_path

FILE: Final = "firnline.toml"
WINDOW_TOKENS_MIN: Final = 256
_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


class Settings(BaseSettings):
    """All settings of a server."""

    model_config = SettingsConfigDict(
        env_prefix="FIRNLINE_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        toml_file=FILE,
        extra="forbid",
    )

    store: str = Field("sqlite:///firnline.db", description="URL of the store")
    host: str = Field("127.0.0.1", description="address to listen at")
    port: int = Field(
        8080, ge=0, le=65_535, description="port to listen at; 0: chosen by the system"
    )
    auth: Literal["auto", "required", "proxy"] = Field(
        "auto",
        description="auto: no key is needed on this machine; required: every request needs a key;"
        " proxy: as auto, and none is needed through trusted proxies, which check their clients",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="addresses or networks of proxies whose X-Forwarded-For is believed"
    )
    secret: SecretStr | None = Field(
        None, description="secret for the hashes of API keys; default: one kept in the store"
    )
    model: str | None = Field(
        None, description="model for turns and digests, such as openai/gpt-4o-mini"
    )
    model_url: str | None = Field(
        None, description="endpoint of the model; default: the provider's"
    )
    model_key: SecretStr | None = Field(None, description="API key of the model")
    upstream: str | None = Field(
        None, description="OpenAI-compatible endpoint behind the proxy, up to /v1"
    )
    upstream_key: SecretStr | None = Field(
        None, description="API key of that endpoint; default: the client's key is forwarded"
    )
    anthropic: str | None = Field(
        None, description="Anthropic endpoint behind /v1/messages, up to /v1"
    )
    anthropic_key: SecretStr | None = Field(None, description="API key of that endpoint")
    upstream_seconds: float = Field(
        limits.UPSTREAM_SECONDS,
        gt=0,
        description="longest silence of an endpoint: before its answer, or within it",
    )
    window_tokens: int | None = Field(
        None,
        ge=WINDOW_TOKENS_MIN,
        description="largest request through the proxy; default: the model's window",
    )
    windows: Annotated[dict[str, int], NoDecode] = Field(
        default_factory=dict,
        description="windows of models by name, such as prod=128000,my-model=32768;"
        " for names that do not tell, such as deployments",
    )
    recall_tools: bool = Field(
        False, description="whether models behind the proxy get tools to search the conversation"
    )
    recall_tool_tokens: int | None = Field(
        None,
        ge=limits.RECALL_TOKENS_MIN,
        description="largest result of such a tool, in tokens; default: as the window allows",
    )
    signing_key: SecretStr | None = Field(
        None, description="signs checkpoints: the text of a key of `firnline signing-key`"
    )
    log_origin: str = Field(
        "firnline",
        description="how the names of logs begin in checkpoints: your URL without its scheme",
    )
    transcript_folders: Annotated[tuple[str, ...], NoDecode] = Field(
        ("~/.claude", "~/.codex"),
        description="folders with transcripts of coding agents, which their hooks may name",
    )
    hook_tokens: int = Field(
        800, ge=0, description="tokens that a hook may add to a prompt after a compaction"
    )
    strategy: str | None = Field(None, description="how contexts are planned; default: layered")
    embedder: str = Field("auto", description="embedder for search by meaning; none: words only")
    background: bool = Field(
        True, description="create digests in the background, without delaying requests"
    )
    worker: bool = Field(True, description="whether this process creates them")
    worker_tenants: Literal["served", "all"] = Field(
        "served", description="of the tenants with keys, bots or requests here, or of all"
    )
    body_bytes_max: int = Field(
        8 * 1024 * 1024, ge=1_024, le=limits.BATCH_BYTES_MAX, description="largest request body"
    )
    import_bytes_max: int = Field(2 * 1024**3, ge=1_024, description="largest file to import")
    requests_per_minute: int = Field(6_000, ge=0, description="per key; 0: no limit")
    tokens_per_minute: int = Field(0, ge=0, description="stored or sent per key; 0: no limit")
    connections_max: int | None = Field(
        None, ge=1, description="connections of clients; default: as the file descriptors allow"
    )
    header_bytes_max: int = Field(
        limits.HEADER_BYTES_MAX, ge=1_024, description="largest headers of a request"
    )
    header_seconds: float = Field(
        limits.HEADER_SECONDS, gt=0, description="longest time for the headers of a request"
    )
    body_seconds: float = Field(
        limits.BODY_SECONDS, gt=0, description="longest time for the body of a request"
    )
    body_stall_seconds: float = Field(
        limits.BODY_STALL_SECONDS, gt=0, description="longest pause within a body"
    )
    body_bytes_per_second: int = Field(
        limits.BODY_BYTES_PER_SECOND, ge=0, description="slowest body; 0: only pauses are limited"
    )
    idle_seconds: float = Field(
        limits.IDLE_SECONDS, gt=0, description="longest pause between requests of a connection"
    )
    send_seconds: float = Field(
        limits.SEND_SECONDS, gt=0, description="longest time in which a client reads nothing"
    )
    streams_max: int = Field(2_000, ge=1, description="answers streamed at the same time")
    drain_seconds: float = Field(
        20.0, ge=0, le=600, description="time for running requests at shutdown"
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_json: bool | None = Field(None, description="default: JSON unless stderr is a terminal")
    otlp_endpoint: str | None = Field(None, description="endpoint for OpenTelemetry spans")
    telegram: dict[str, BotSettings] = Field(default_factory=dict, description="bots by name")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments come first, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @field_validator("upstream", "anthropic", "model_url", "otlp_endpoint")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected a URL such as https://host/v1")
        if parts.username or parts.password:
            raise ValueError(
                "must not contain a user name or password; use the setting for the key"
            )
        return url.rstrip("/")

    @field_validator("windows", mode="before")
    @classmethod
    def _is_table(cls, given: object) -> object:
        if not isinstance(given, str):
            return given
        if given.lstrip().startswith("{"):
            return json.loads(given)
        rows = (row.rpartition("=") for row in given.split(",") if row.strip())
        return {name.strip(): tokens.strip() for name, _, tokens in rows}

    @field_validator("windows")
    @classmethod
    def _are_windows(cls, given: dict[str, int]) -> dict[str, int]:
        for name, tokens in given.items():
            if not name or tokens < WINDOW_TOKENS_MIN:
                raise ValueError(
                    "expected windows of at least 256 tokens by model, such as prod=128000"
                )
        return given

    @field_validator("trusted_proxies", "transcript_folders", mode="before")
    @classmethod
    def _is_list(cls, given: object) -> object:
        return given.replace(",", " ").split() if isinstance(given, str) else given

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in given:
            try:
                ipaddress.ip_network(one, strict=False)
            except ValueError:
                raise ValueError("expected addresses or networks such as 10.0.0.0/8") from None
        return given

    @model_validator(mode="after")
    def _has_proxies(self) -> Self:
        if self.auth == "proxy" and not self.trusted_proxies:
            raise ValueError("auth=proxy requires trusted_proxies")
        return self

    @cached_property
    def proxies(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """The networks of trusted proxies."""
        return tuple(ipaddress.ip_network(one, strict=False) for one in self.trusted_proxies)

    @property
    def loopback(self) -> bool:
        """Whether the server is reachable from this machine only."""
        return is_loopback(self.host)

    @property
    def open(self) -> bool:
        """Whether direct requests from this machine are accepted without a key."""
        return self.auth != "required" and self.loopback


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load(file: str | None = None, **given: Any) -> Settings:
    """Load the settings; `InputError` lists the invalid ones.

    `file` is the TOML file; default: ``FIRNLINE_CONFIG``, or ``firnline.toml`` in the working
    directory.
    """
    named = file or os.environ.get("FIRNLINE_CONFIG")
    if named and not local_path(named).is_file():
        raise InputError(f"there is no settings file {named}")
    path, most = Path(named or FILE), limits.SETTINGS_BYTES_MAX
    if path.is_file() and path.stat().st_size > most:
        raise InputError(f"{path} is too large for a settings file: the limit is {most:,} bytes")
    chosen = {name: value for name, value in given.items() if value is not None}
    kind = type("Settings", (Settings,), {}, toml_file=named or FILE) if named else Settings
    try:
        settings: Settings = kind(**chosen)
    except ValidationError as error:
        raise InputError(_describe(error)) from None
    except (ValueError, OSError) as error:  # the file is not TOML, or not ours to read
        raise InputError(f"{named or FILE} cannot be read: {error}") from None
    return settings


def _describe(error: ValidationError) -> str:
    """The invalid settings with their environment variables, without values (may be secret)."""
    lines = []
    for wrong in error.errors(include_input=False, include_url=False):
        name = "__".join(map(str, wrong["loc"]))
        unknown = wrong["type"] == "extra_forbidden"
        what = "unknown setting" if unknown else wrong["msg"].removeprefix("Value error, ")
        lines.append(f"  {name} (FIRNLINE_{name.upper()}): {what}")
    return "\n".join(["invalid settings:", *lines])
