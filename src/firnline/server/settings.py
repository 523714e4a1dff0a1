"""The server's settings: the environment (``FIRNLINE_…``) or a TOML file, checked at the start.

The library itself takes arguments; this is the only place where it reads an environment.
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

FILE: Final = "firnline.toml"
_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


class Settings(BaseSettings):
    """Everything that can be chosen for a server."""

    model_config = SettingsConfigDict(
        env_prefix="FIRNLINE_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        toml_file=FILE,
        extra="forbid",
    )

    store: str = Field("sqlite:///firnline.db", description="where the conversations are")
    host: str = Field("127.0.0.1", description="the address to listen at")
    port: int = Field(8080, ge=0, le=65_535, description="its port; 0 lets the system choose")
    auth: Literal["auto", "required"] = Field(
        "auto",
        description="auto: whoever is on this machine needs no key; required: everybody does",
    )
    secret: SecretStr | None = Field(
        None, description="the key of the API keys' hashes; else one is kept in the store"
    )
    model: str | None = Field(
        None, description="who answers turns and writes digests, such as openai/gpt-4o-mini"
    )
    model_url: str | None = Field(None, description="its endpoint, if it is not the provider's own")
    model_key: SecretStr | None = Field(None, description="the key for that")
    upstream: str | None = Field(
        None, description="the OpenAI-compatible endpoint behind the proxy, up to /v1"
    )
    upstream_key: SecretStr | None = Field(
        None, description="the key for that; else the client's own is passed on"
    )
    anthropic: str | None = Field(
        None, description="the Anthropic endpoint behind /v1/messages, up to /v1"
    )
    anthropic_key: SecretStr | None = Field(None, description="the key for that")
    window_tokens: int | None = Field(
        None, ge=256, description="no request through the proxy is larger; else the model's window"
    )
    recall_tools: bool = Field(
        False, description="whether models behind the proxy get tools to look into the conversation"
    )
    strategy: str | None = Field(None, description="how contexts are planned: layered unless given")
    embedder: str = Field("auto", description="who finds entries by meaning; none: words alone")
    background: bool = Field(True, description="digests are made beside the chat, never waited for")
    worker: bool = Field(True, description="whether they are made by this process")
    body_bytes_max: int = Field(8 * 1024 * 1024, ge=1_024, le=limits.BATCH_BYTES_MAX)
    import_bytes_max: int = Field(2 * 1024**3, ge=1_024, description="of an export to be imported")
    requests_per_minute: int = Field(6_000, ge=0, description="of one key; 0: no limit")
    tokens_per_minute: int = Field(0, ge=0, description="stored or sent by one key; 0: no limit")
    streams_max: int = Field(2_000, ge=1, description="answers that are streamed at once")
    drain_seconds: float = Field(20.0, ge=0, le=600, description="for what goes on at the end")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_json: bool | None = Field(None, description="else: JSON unless it is a terminal")
    otlp_endpoint: str | None = Field(None, description="where OpenTelemetry spans are sent")
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
        """What is given comes first, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @field_validator("upstream", "anthropic", "model_url", "otlp_endpoint")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected something like https://host/v1")
        if parts.username or parts.password:
            raise ValueError(
                "a name or password in it would be shown in logs; use the key's setting"
            )
        return url.rstrip("/")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def open(self) -> bool:
        """Whether requests without a key are taken."""
        return self.auth == "auto" and self.loopback


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or number."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load(file: str | None = None, **given: Any) -> Settings:
    """The settings; what is wrong with them raises `InputError`, naming each one.

    `file` is the TOML file, ``firnline.toml`` in the working folder unless it is named here or in
    ``FIRNLINE_CONFIG``.
    """
    named = file or os.environ.get("FIRNLINE_CONFIG")
    if named and not Path(named).is_file():
        raise InputError(f"there is no settings file {named}")
    chosen = {name: value for name, value in given.items() if value is not None}
    kind = type("Settings", (Settings,), {}, toml_file=named or FILE) if named else Settings
    try:
        settings: Settings = kind(**chosen)
    except ValidationError as error:
        raise InputError(_told(error)) from None
    except ValueError as error:  # the file is not TOML
        raise InputError(f"{named or FILE} cannot be read: {error}") from None
    return settings


def _told(error: ValidationError) -> str:
    """Each wrong setting with its name in the environment; never its value, which may be secret."""
    lines = []
    for wrong in error.errors(include_input=False, include_url=False):
        name = "__".join(map(str, wrong["loc"]))
        unknown = wrong["type"] == "extra_forbidden"
        what = "there is no such setting" if unknown else wrong["msg"].removeprefix("Value error, ")
        lines.append(f"  {name} (FIRNLINE_{name.upper()}): {what}")
    return "\n".join(["the settings are not right:", *lines])
