"""The configuration has defaults for everything, and each mistake names its file and key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from finding_tickets.errors import BadDataError, ExitCode
from finding_tickets.ground.cache import cache_folder
from finding_tickets.model.vocabulary import Vocabulary, word_for
from finding_tickets.register import config_table
from finding_tickets.register.config import Config, read_config


def configure(root: Path, text: str, name: str = "tickets.toml") -> Path:
    """Write a configuration file into ``root``."""
    file = root / name
    file.write_text(text)
    return file


def test_defaults(tmp_path: Path) -> None:
    """A register without a configuration has the documented defaults."""
    config = read_config(tmp_path)
    assert (("tickets",), "evidence", "templates") == (config.tickets, config.evidence, config.templates)
    # 8 GiB = 8 * 1024^3 bytes.
    assert ("simulated", 120.0, 8_589_934_592) == (config.meter, config.timeout, config.memory)


def test_every_key(tmp_path: Path) -> None:
    """Each key is read."""
    configure(
        tmp_path,
        """
        tickets = ["findings", "reviews"]
        evidence = "measured"
        templates = "ours"
        meter = "simulated"
        timeout = 2.5
        memory = "512MiB"
        id_pattern = "T-[0-9]+"
        agents = ["security"]
        domains = {core = ["kernel"]}
        categories = ["Leak"]
        severities = {P0 = ["critical"]}
        statuses = {open = ["todo"]}
        outcomes = {fixed = ["shipped"]}
        opinions = {ENDORSE = ["approve"]}
        """,
    )
    config = read_config(tmp_path)
    assert (("findings", "reviews"), "measured", "ours") == (
        config.tickets,
        config.evidence,
        config.templates,
    )
    # 512 MiB = 512 * 1024^2 bytes.
    assert ("simulated", 2.5, 536_870_912) == (config.meter, config.timeout, config.memory)
    words = config.vocabulary
    assert ("T-[0-9]+", {"security": ()}, {"core": ("kernel",)}) == (
        words.id_pattern,
        words.agents,
        words.domains,
    )
    assert {"Leak": ()} == words.categories
    assert (("critical",), "todo") == (words.severities["P0"], words.statuses["open"][0])
    assert (("shipped",), "approve") == (words.outcomes["fixed"], words.opinions["ENDORSE"][0])
    # Words that are not mentioned keep their place.
    assert ["P0", "P1", "P2", "P3", "P4"] == list(words.severities)


def test_spellings_are_added(tmp_path: Path) -> None:
    """What a word was called before it still is, but for what the register calls another word."""
    configure(tmp_path, "[statuses]\nclosed = ['erledigt']\nfixed = ['Done']")
    statuses = read_config(tmp_path).vocabulary.statuses
    assert ("erledigt", "resolved", "complete", "completed", "duplicate") == statuses["closed"]
    assert ("Done", "already fixed", "implemented") == statuses["fixed"]
    assert ["closed", "closed", "fixed"] == [
        word_for(each, statuses) for each in ("Erledigt", "resolved", "done")
    ]


def test_the_documentation_has_all_spellings() -> None:
    """Who replaces or adds one finds there what is known without it."""
    page = (Path(__file__).parents[2] / "docs/configuration.md").read_text("utf-8")
    words = Vocabulary()
    for key in ("severities", "statuses", "outcomes", "opinions"):
        for word, others in getattr(words, key).items():
            also = ", ".join(f"`{each}`" for each in others)
            assert f"| `{key}` | `{word}` | {also} |\n".replace("|  |", "| |") in page


def test_in_pyproject(tmp_path: Path) -> None:
    """The table tool.tickets of a pyproject.toml is a configuration."""
    configure(tmp_path, '[project]\nname = "x"\n[tool.tickets]\ntimeout = 7\n', "pyproject.toml")
    assert 7.0 == read_config(tmp_path).timeout


def test_another_pyproject(tmp_path: Path) -> None:
    """A pyproject.toml that says nothing about tickets changes nothing."""
    configure(tmp_path, '[tool.other]\ntimeout = "x"\n', "pyproject.toml")
    assert Config() == read_config(tmp_path)


def test_the_own_file_wins(tmp_path: Path) -> None:
    """tickets.toml counts where both are there."""
    configure(tmp_path, "[tool.tickets]\ntimeout = 7\n", "pyproject.toml")
    configure(tmp_path, "timeout = 8\n")
    assert 8.0 == read_config(tmp_path).timeout


def test_a_removed_key_names_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who still has a key of an older version reads what to do instead, and in which file it stands."""
    monkeypatch.setattr(config_table, "REMOVED_KEYS", {"old": "use new"})
    file = configure(tmp_path, "old = 1\n")
    with pytest.raises(BadDataError) as wrong:
        read_config(tmp_path)
    assert f"{file}: the key 'old' is gone (use new)" == str(wrong.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timout = 5", "unknown key 'timout' (did you mean 'timeout'? known: tickets"),
        ("timeout = '5'", "timeout: must be a number of seconds above 0, not '5'"),
        ("meter = 'gpu'", "meter: must be one of auto, simulated, cuda, not 'gpu'"),
        ("timeout = true", "timeout: must be a number of seconds above 0, not True"),
        ("timeout = -1", "timeout: must be a number of seconds above 0, not -1"),
        ("timeout = nan", "timeout: must be a number of seconds above 0, not nan"),
        ("memory = 'lots'", "memory: must be a number of bytes such as '8GiB', not 'lots'"),
        ("memory = 0", "memory: must be a number of bytes such as '8GiB', not 0"),
        ("memory = true", "memory: must be a number of bytes such as '8GiB', not True"),
        ("tickets = []", "tickets: must be a path or a list of at least one, not []"),
        ("tickets = 3", "tickets: must be a path or a list of at least one, not 3"),
        ("evidence = ''", "evidence: must be a path, not ''"),
        ("evidence = '../up'", "evidence: ../up leaves the repository"),
        ("tickets = ['a', '/etc']", "tickets: /etc leaves the repository"),
        ("id_pattern = 5", "id_pattern: must be a regular expression, not 5"),
        ("agents = 'me'", "agents: must be a list of words or a table of their spellings, not 'me'"),
        (
            "agents = {me = 'I'}",
            "agents: must be a list of words or a table",
        ),
        ("severities = {P9 = []}", "severities: no such word as 'P9'; the words are P0, P1, P2, P3, P4"),
        ("severities = ['bad']", "severities: no such word as 'bad'; the words are P0, P1, P2, P3, P4"),
    ],
)
def test_mistake(tmp_path: Path, text: str, message: str) -> None:
    """An unknown key or a wrong value is bad data, and the message names file and key."""
    file = configure(tmp_path, text)
    with pytest.raises(BadDataError) as caught:
        read_config(tmp_path)
    assert str(caught.value).startswith(f"{file}: {message}")
    assert ExitCode.BAD_DATA == caught.value.exit_code


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"timeout = \n", ":1: not TOML:"),
        (b"a = 1\nb = \n", ":2: not TOML:"),
        (b"\xff", ": cannot be read:"),
        (b"id_pattern = '(?P<id>a)'\n", ": id_pattern: must be a regular expression: "),
        (b"id_pattern = 'a)|(b'\n", ": id_pattern: must be a regular expression: "),
        (b"id_pattern = '['\n", ": id_pattern: must be a regular expression: "),
    ],
)
def test_unreadable(tmp_path: Path, data: bytes, start: str) -> None:
    """A file that is no TOML is bad data, with the line where that is known."""
    file = tmp_path / "tickets.toml"
    file.write_bytes(data)
    with pytest.raises(BadDataError) as caught:
        read_config(tmp_path)
    assert str(caught.value).startswith(f"{file}{start}")


def test_a_configuration_is_validated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither parsed nor checked again until the file changes or the cache is damaged."""
    configure(tmp_path, "timeout = 7\ncategories = ['Leak']\n")
    expected = read_config(tmp_path)
    loads: list[str] = []
    parse = tomllib.loads

    def noted(text: str) -> object:
        loads.append(text)
        return parse(text)

    monkeypatch.setattr(tomllib, "loads", noted)
    assert (expected, []) == (read_config(tmp_path), loads)
    folder = cache_folder()
    assert folder is not None
    for entry in (folder / "config").iterdir():
        entry.write_bytes(b"{")
    assert (expected, 1) == (read_config(tmp_path), len(loads))
    configure(tmp_path, "timeout = 8\n")
    assert (8.0, 2) == (read_config(tmp_path).timeout, len(loads))


def test_a_folder_is_looked_at_each_time(tmp_path: Path) -> None:
    """A link that leads elsewhere now is refused, although the file that names it was accepted before."""
    root = tmp_path / "root"
    root.mkdir()
    configure(root, "tickets = 'found'\n")
    assert ("found",) == read_config(root).tickets
    (root / "found").symlink_to(tmp_path)
    with pytest.raises(BadDataError, match="tickets: found leaves the repository"):
        read_config(root)


def test_a_value_for_the_table(tmp_path: Path) -> None:
    """tool.tickets must be a table."""
    file = configure(tmp_path, "[tool]\ntickets = 1\n", "pyproject.toml")
    with pytest.raises(BadDataError, match="must be a table") as caught:
        read_config(tmp_path)
    assert str(file) == caught.value.file


@pytest.mark.parametrize(
    ("pattern", "excluded"),
    [
        ("notes/*", ["notes/a.md", "notes/deep/top.md"]),
        ("top.md", ["notes/deep/top.md", "top.md"]),
        ("/top.md", ["top.md"]),
    ],
)
def test_what_a_pattern_excludes(pattern: str, excluded: list[str]) -> None:
    """Without a slash it is that of a name; with one in front, of a file at the root."""
    config = Config(exclude=(pattern,))
    paths = ["notes/a.md", "notes/deep/top.md", "top.md", "stop.md"]
    assert excluded == [path for path in paths if config.is_excluded(path)]
