"""The objects of SARIF 2.1.0, as far as tickets are made from them; everything else is skipped unread.

Whatever a tool may leave out may also be null. Properties and what they mean are those of the standard,
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct, field

VERSION = "2.1.0"


class Part(Struct, frozen=True, rename="camel"):
    """An object of the log."""


class Text(Part, frozen=True):
    """What is said once for a tool, a rule or a region."""

    text: str | None = None
    markdown: str | None = None


class Message(Part, frozen=True):
    """What is said of one result; ``id`` is that of a text of the rule, ``arguments`` fill its gaps."""

    text: str | None = None
    markdown: str | None = None
    id: str | None = None
    arguments: list[str] | None = None


class ArtifactLocation(Part, frozen=True):
    """A file; its URI, or its index among those of the run. ``uri_base_id`` names what it is relative to."""

    uri: str | None = None
    uri_base_id: str | None = None
    index: int | None = None


class Artifact(Part, frozen=True):
    """A file that the run lists."""

    location: ArtifactLocation | None = None


class Region(Part, frozen=True):
    """Part of a file; lines and columns count from 1."""

    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    snippet: Text | None = None


class PhysicalLocation(Part, frozen=True):
    """Where in a file."""

    artifact_location: ArtifactLocation | None = None
    region: Region | None = None


class LogicalLocation(Part, frozen=True):
    """A function, a class, or what else has a name; perhaps by its index among those of the run."""

    name: str | None = None
    fully_qualified_name: str | None = None
    index: int | None = None


class Location(Part, frozen=True):
    """A place, by file and by name."""

    id: int | None = None
    physical_location: PhysicalLocation | None = None
    logical_locations: list[LogicalLocation] | None = None
    message: Message | None = None


class Configuration(Part, frozen=True):
    """How a rule is set."""

    level: str | None = None


class Properties(Part, frozen=True):
    """What services agree on beside the standard; of any type, since tools may put anything there."""

    tags: Any = None
    security_severity: Any = field(default=None, name="security-severity")


class Rule(Part, frozen=True):
    """What a tool says of one of its rules."""

    id: str | None = None
    name: str | None = None
    short_description: Text | None = None
    full_description: Text | None = None
    help_uri: str | None = None
    message_strings: dict[str, Text | None] | None = None
    default_configuration: Configuration | None = None
    properties: Properties | None = None


class Component(Part, frozen=True):
    """A tool, or an extension of it."""

    name: str | None = None
    guid: str | None = None
    version: str | None = None
    semantic_version: str | None = None
    rules: list[Rule] | None = None
    global_message_strings: dict[str, Text | None] | None = None


class Tool(Part, frozen=True):
    """A tool with its extensions."""

    driver: Component | None = None
    extensions: list[Component] | None = None


class ComponentReference(Part, frozen=True):
    """An extension, by its index, GUID or name."""

    index: int | None = None
    guid: str | None = None
    name: str | None = None


class RuleReference(Part, frozen=True):
    """A rule, by its ID or by its index among those of a component."""

    id: str | None = None
    index: int | None = None
    tool_component: ComponentReference | None = None


class Suppression(Part, frozen=True):
    """A decision not to show a result."""

    kind: str | None = None
    status: str | None = None


class Fix(Part, frozen=True):
    """A change that the tool proposes."""

    description: Message | None = None


class Result(Part, frozen=True):
    """One thing that a tool has to say."""

    rule_id: str | None = None
    rule_index: int | None = None
    rule: RuleReference | None = None
    kind: str | None = None
    level: str | None = None
    message: Message | None = None
    locations: list[Location] | None = None
    related_locations: list[Location] | None = None
    fingerprints: dict[str, str] | None = None
    partial_fingerprints: dict[str, str] | None = None
    baseline_state: str | None = None
    suppressions: list[Suppression] | None = None
    fixes: list[Fix] | None = None
    properties: Properties | None = None


class Invocation(Part, frozen=True):
    """One start of the tool."""

    execution_successful: bool | None = None


class Provenance(Part, frozen=True):
    """A repository that was looked at, and which base of URIs is its root."""

    mapped_to: ArtifactLocation | None = None


class Run(Part, frozen=True):
    """Everything from one run of a tool; its results are taken apart one at a time."""

    tool: Tool | None = None
    results: list[Raw] | None = None
    artifacts: list[Artifact] | None = None
    logical_locations: list[LogicalLocation] | None = None
    original_uri_base_ids: dict[str, ArtifactLocation | None] | None = None
    invocations: list[Invocation] | None = None
    version_control_provenance: list[Provenance] | None = None
    external_property_file_references: Any = None

    @property
    def driver(self) -> Component:
        """The tool itself."""
        return (self.tool and self.tool.driver) or Component()
