"""What the name of a value says of it, and what the value does: names.go of Go's internal/secret."""

from __future__ import annotations

import re
from typing import List

from ._secret_tables import ACCOUNTS, CHANGES, COLUMNS, GLUED, KEYS, LAST, QUALIFIERS, SWITCHES, TEXTS

MASK = "***"
MAX_NAME = 64
DIGITS = "0123456789"
SMALL = "abcdefghijklmnopqrstuvwxyz"
_PLAIN = frozenset(["", "None", "none", "null", "nil", "True", "true", "False", "false", "undefined", "NULL", "...", "…", "-", "=", "$"])
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s\Z)")
_SPLIT = re.compile(r"[^a-z0-9]+")
_MAY = re.compile(r"[^0-9_\x00-\x2f][0-9_\x00-\x2f]*\Z")
_NAME = re.compile(r"[A-Za-z0-9_.+/:-]+\Z")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_][A-Za-z0-9_]*\}?\Z")
_FLAG = re.compile(r"-[A-Za-z](=.*)?\Z|--\Z|--[a-z][a-z0-9_.-]*(=.*)?\Z", re.DOTALL)


def words(name: str) -> List[str]:
    """The words of a name in small letters."""
    name = name[2:] if name.startswith("-D") else name
    return [w for w in _SPLIT.split(_HUMP.sub("-", name[-MAX_NAME:]).lower()) if w]


def kind_of(name: str) -> str:
    """The kind of secret that a name says its value is, empty for none."""
    may = _MAY.search(name)
    if not may or may.start() < 1 or may[0][0].lower() not in "bdeghklnrstvwy":
        return ""
    rest = words(name)
    if not rest:
        return ""
    while len(rest) > 1 and (rest[-1] in QUALIFIERS or not rest[-1].strip(DIGITS)):  # API_KEY_1
        rest.pop()
    last = rest.pop().rstrip(DIGITS)
    before = rest[-1] if rest else ""
    account = before in ACCOUNTS
    if last in ("key", "keys"):
        if before == "private":
            return "file"
        if before in KEYS:
            return "key"
        return "file" if before and of_environment(name) and before not in COLUMNS else ""
    if last == "id":
        return "key" if rest[-2:] == ["access", "key"] else ""
    if last == "pat":
        return "token" if account or not rest and of_environment(name) else ""
    if last == "tokens":
        return "password" if account else ""
    if last == "token" and before in TEXTS or last in ("pass", "pwd") and rest and not account:
        return ""
    if last == "pwd" and rest:
        return "password"
    return LAST.get(last, "password" if last.endswith(GLUED) else "")


def of_environment(name: str) -> bool:
    """Whether a name is written as those of the environment are."""
    return not any("a" <= c <= "z" or c in "-." for c in name)


def is_change(name: str) -> bool:
    """Whether a subcommand changes a secret, which follows it."""
    first = words(name)
    return len(first) > 1 and first[0] in CHANGES and is_name(name) and bool(kind_of(name))


def is_switch(name: str) -> bool:
    """Whether a flag says by its first word that no secret follows."""
    return bool(SWITCHES.intersection(words(name)[:1]))


def is_name(text: str) -> bool:
    """Whether a text can be the name of a flag, a variable or a setting."""
    return bool(_NAME.match(text)) and "://" not in text


def compound(name: str) -> bool:
    """Whether "name:value" can be written without a space."""
    return ("_" in name or "-" in name) and not name.lower().rstrip("s").endswith("secret")


def looks_like_flag(arg: str) -> bool:
    """Whether an argument is the next flag rather than a value that begins with a dash."""
    return bool(_FLAG.match(arg))


def plain(kind: str, value: str) -> bool:
    """Whether a value is no secret of the kind."""
    if value in _PLAIN or value.lstrip("\"'`\\").startswith(MASK):
        return True
    if kind == "token":
        return is_number(value) or value[0] + value[-1] in ("<>", "[]") and not any(c in value for c in "= \t\n")
    if kind == "file":
        return is_number(value) or _is_path(value)
    if kind == "maybe":
        return is_number(value) or _is_path(value) or "://" in value or MASK in value or len(value) < 24 and not value.strip(SMALL + "-_./,=")
    if kind == "login":
        return not value.strip(DIGITS + ":") or not any(c in value for c in ":%,") or value.endswith(":" + MASK)
    return False


def is_number(value: str) -> bool:
    return len(value) < 10 and not value.strip(DIGITS + ".-+")


def _is_path(value: str) -> bool:
    return value.startswith(("/", "./", "~/")) or value.endswith((".pem", ".key", ".json", ".crt", ".yaml", ".yml", ".txt"))


def reference(value: str) -> bool:
    """Whether a value in the text of a shell is the name of a variable, or a command."""
    if len(value) > 2 and (value[0] + value[-1] == "``" or value.startswith("$(") and value.endswith(")")):
        return True
    return bool(_VARIABLE.match(value))
