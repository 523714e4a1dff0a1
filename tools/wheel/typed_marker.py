"""Adds PEP 561's marker to the wheel; `src/firnline` itself shows the architecture and no more."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TypedMarker(BuildHookInterface):
    """In an editable install, the marker alone would hide the package from mypy: leave it out."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built; `version` is "standard" or "editable"."""
        if version == "standard":
            build_data["force_include"]["tools/wheel/py.typed"] = "firnline/py.typed"
