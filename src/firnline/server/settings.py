"""The server's settings: environment variables (``FIRNLINE_…``) or a TOML file, checked at startup.

The library itself takes arguments; only the server reads the environment.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from firnline.errors import InputError
from firnline.log import limits
from firnline.server.telegram.settings import BotSettings
from firnline.store.files import local_path

FILE: Final = "firnline.toml"
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
    auth: Literal["auto", "required"] = Field(
        "auto",
        description="auto: no key is needed on this machine; required: every request needs a key",
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
    window_tokens: int | None = Field(
        None, ge=256, description="largest request through the proxy; default: the model's window"
    )
    recall_tools: bool = Field(
        False, description="whether models behind the proxy get tools to search the conversation"
    )
    strategy: str | None = Field(None, description="how contexts are planned; default: layered")
    embedder: str = Field("auto", description="embedder for search by meaning; none: words only")
    background: bool = Field(
        True, description="create digests in the background, without delaying requests"
    )
    worker: bool = Field(True, description="whether this process creates them")
    body_bytes_max: int = Field(
        8 * 1024 * 1024, ge=1_024, le=limits.BATCH_BYTES_MAX, description="largest request body"
    )
    import_bytes_max: int = Field(2 * 1024**3, ge=1_024, description="largest file to import")
    requests_per_minute: int = Field(6_000, ge=0, description="per key; 0: no limit")
    tokens_per_minute: int = Field(0, ge=0, description="stored or sent per key; 0: no limit")
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

    @property
    def loopback(self) -> bool:
        """Whether the server is reachable from this machine only."""
        return is_loopback(self.host)

    @property
    def open(self) -> bool:
        """Whether requests without a key are accepted."""
        return self.auth == "auto" and self.loopback


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
