"""Finds secrets in any text: values.go and addresses.go of Go's internal/secret."""

from __future__ import annotations

import re
from typing import List, Tuple

from ._secret_names import DIGITS, MASK, MAX_NAME, SMALL, compound, is_number, is_switch, kind_of, looks_like_flag, of_environment, plain, reference
from ._secret_tables import BARE, FORMS, PARAMETERS, TYPES

Span = Tuple[int, int]

_INTERESTING = re.compile("[=:@,Bb" + "".join(sorted({re.escape(form[0][0]) for form in FORMS})) + "-]")
_FORMS = [(prefix, least, re.compile(f"[A-Za-z0-9{re.escape(also)}]*")) for prefix, least, also in FORMS]
_NOT_END = r"[^ \t\n\r\"'`,;&|()\[\]{}<>\\\0]"
_VALUE = re.compile(_NOT_END + "*")
_ADDRESS = re.compile(r"[^ \t\n\r\"'`,;&|()\[\]{}<>\\\0?#]*")
_AHEAD = re.compile(r"[^ \t\n\r\"'`,;&|()\[\]{}<>\\\0/@]*")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_WORD = re.compile(r"[^ \t\n\r]*")
_FLAG = re.compile(r"--[A-Za-z0-9_.-]+")
_TYPE = re.compile(r"[A-Za-z0-9_.]{0,64}")
_TYPES = re.compile(r"[A-Za-z \t\[\]._|,'\"]*=")
_HEADER = re.compile(r"[^\r\n\"'`]*")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|apikey) (?=.)", re.IGNORECASE | re.DOTALL)
_SCHEME_NAME = re.compile(r"[A-Za-z]*\Z")
_VARIABLE = re.compile(r"\$\{[^}]{0,62}\}")
_LITERAL = re.compile(r"[\\bBrRuUfF]?[\"']")
_QUOTE = re.compile(r"[$bBrRuUfF]{0,2}([\"'`])")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ALNUM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ" + SMALL + DIGITS)
_IN_NAME = _ALNUM | frozenset("_-.")
_QUOTES = "\"'`"


def values(text: str) -> List[Span]:
    """The parts of a text that are secrets by their form, by a name before them, or by their place in an address."""
    scan = _Scan(text)
    m = _INTERESTING.search(text)
    while m:
        m = _INTERESTING.search(text, scan.step(m.start()))
    return scan.out


def _formed(text: str, at: int) -> int:
    """How many characters, where a word begins, are a secret by their form."""
    for prefix, least, rest in _FORMS:
        if not text.startswith(prefix, at):
            continue
        m = rest.match(text, at + len(prefix))
        run = m[0] if m else ""
        mixed = any(c in DIGITS or "A" <= c <= "Z" for c in run)
        if len(run) >= least and (mixed or len(run) >= 2 * least) and (prefix != "sk-" or _long_run(run)):
            return len(prefix) + len(run)
    return 0


def _long_run(text: str) -> bool:
    return any(len(part) >= 10 and part.strip(SMALL) for part in re.split("[-_]", text))


class _Scan:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.out: List[Span] = []
        self.done = 0
        self.address = (0, 0)  # the last "@" of the last address, and where it ends

    def mask(self, start: int, end: int) -> int:
        if start >= self.done and self.text[start:end] != MASK:
            self.out.append((start, end))
            self.done = end
        return end

    def step(self, i: int) -> int:
        """Looks at one place, and returns the next."""
        text = self.text
        c = text[i]
        if c == "=":
            return i + 2 if text.startswith("==", i) else self.value(i)
        if c == "@":
            return self.at(i)
        if c == ",":
            return self.parameter(i)
        if c == ":":
            return self.url(i) if text.startswith("://", i) else self.value(i)
        if i > 0 and (text[i - 1] in _ALNUM or text[i - 1] in "_-"):
            return i + 1
        if c == "-":
            return self.flag(i)
        formed = _formed(text, i)
        if formed:
            return self.mask(i, i + formed)
        if c in "Bb" and text[i : i + 7].lower() == "bearer ":
            end = self.match(_VALUE, i + 7)
            word = text[i + 7 : end]
            if len(word) >= 8 and any(c in DIGITS for c in word):
                return self.mask(i + 7, end)
        return i + 1

    def match(self, pattern: "re.Pattern[str]", start: int) -> int:
        """Where a pattern, which can match nothing, ends."""
        m = pattern.match(self.text, start)
        return m.end() if m else start

    def flag(self, i: int) -> int:
        """Looks at a flag in the middle of a text: --api-key VALUE."""
        if not self.text.startswith("--", i):
            return i + 1
        end = self.match(_FLAG, i)
        if end == i:
            return i + 2
        start = self.match(_BLANKS, end)
        name = self.text[i:end]
        if start in (end, len(self.text)) or not kind_of(name) or is_switch(name):
            return end
        following = self.match(_WORD, start)
        if looks_like_flag(self.text[start:following]):
            return following
        return self.span(kind_of(name), start)

    def name(self, end: int) -> Tuple[int, int, bool]:
        """Where the name is that ends at a place, and whether it is in quotes."""
        text = self.text
        while end > 0 and text[end - 1] in " \t":
            end -= 1
        quoted = False
        while end > 0 and text[end - 1] in "\"'`\\]":
            end -= 1
            quoted = True
        start = end
        while start > 0 and end - start < MAX_NAME and text[start - 1] in _IN_NAME:
            start -= 1
        return start, end, quoted

    def value(self, i: int) -> int:
        """Looks at a name and its value, between which a "=" or ":" is."""
        text, before = self.text, i
        if text[i] == "=" and i > 0 and text[i - 1] in ":?+":
            before -= 1
        at, end, quoted = self.name(before)
        if at == end:
            return i + 1
        name = text[at:end]
        kind = kind_of(name)
        if text[i] == "=" and at > 0 and text[at - 1] in "?&" and kind in ("", "login"):
            if name.lower() in PARAMETERS or name.lower().endswith("signature"):
                kind = "maybe"
        if not kind:
            return i + 1
        start = i + 1
        if text.startswith(">", start):
            start += 1
        if text[i] == ":":
            spaced = start < len(text) and text[start] in " \t\"'"
            simple = not name.strip(SMALL) and kind not in ("password", "header")  # "unexpected token: 5"
            value, typed = self.typed(start)
            if typed:
                if not value:
                    return i + 1
                start = value
            elif not quoted and (spaced and simple or not spaced and not self.glued(kind, name, start)):
                return i + 1
        if text[i] == ":" or before > end or quoted:
            start = self.match(_BLANKS, start)
        return self.header(start) if kind == "header" else self.span(kind, start)

    def glued(self, kind: str, name: str, start: int) -> bool:
        """Whether a ":" without a space is followed by a value, rather than by a line's number or a version."""
        if start >= len(self.text) or self.text[start] in DIGITS and is_number(self.text[start : min(self.end(start), start + 10)]):
            return False
        return kind == "header" or compound(name) or kind == "password" and compound("_" + name)

    def typed(self, start: int) -> Tuple[int, bool]:
        """Looks for a type between a name and its value: password: str = "…"."""
        start = self.match(_BLANKS, start)
        end = self.match(_TYPE, start)
        if self.text[start:end].rsplit(".", 1)[-1].lower() not in TYPES:
            return 0, False
        m = _TYPES.match(self.text, end, min(start + 64, len(self.text)))
        return (self.match(_BLANKS, m.end()), True) if m else (0, True)

    def parameter(self, i: int) -> int:
        """Looks at a name and its value that are arguments of a function in code."""
        at, end, quoted = self.name(i)
        start = self.match(_BLANKS, i + 1)
        if not quoted or at == end or not _LITERAL.match(self.text, start):
            return i + 1
        name = self.text[at:end]
        kind = kind_of(name)
        before = self.text[max(at - 8, 0) : at].rstrip("\"'`\\ brfu")
        call = before.endswith("(") or "setattr(" in self.text[max(at - 32, 0) : at]
        if not kind or name[0] == "-" or not call or not compound(name) and not of_environment(name):
            return i + 1
        return self.header(start) if kind == "header" else self.span(kind, start)

    def header(self, start: int) -> int:
        """Masks the value of a header of HTTP but for the name of its scheme."""
        text = self.text
        if start < len(text) and text[start] in _QUOTES:
            start += 1
        end = self.match(_HEADER, start)
        end = start + len(text[start:end].rstrip(" \\"))
        m = _SCHEME.match(text, start, end)
        return self.one("password", m.end() if m else start, end)

    def span(self, kind: str, start: int) -> int:
        """Masks the value that begins at a place, and returns where it ends."""
        text = self.text
        if start < len(text) - 1 and text[start] == "\\":
            start += 1
        m = _VARIABLE.match(text, start)
        if m and reference(m[0]):
            return m.end()
        m = _QUOTE.match(text, start)
        if m:
            return self.quoted(kind, m.start(1))
        if start < len(text) and text[start] in _CLOSING:
            return self.list(kind, start)
        return self.one(kind, start, self.end(start))

    def end(self, start: int) -> int:
        """Where a value ends that is not in quotes."""
        end = self.match(_VALUE, start)
        if start < end < len(self.text) and self.text[end] in "([":
            line = self.text[end : end + 256].split("\n", 1)[0]
            closed = line.find(_CLOSING[line[0]])
            if closed > 0:
                return end + closed + 1
        return end

    def quoted(self, kind: str, start: int) -> int:
        """Masks what is in quotes."""
        text, quote = self.text, self.text[start]
        end = start + 1
        while end < len(text) and text[end] != quote:
            if text[end] == "\\" and end + 1 < len(text) and text[end + 1] != quote:
                end += 1
            end += 1
        end = min(end, len(text))
        if end > start + 1 and text[end - 1] == "\\":
            end -= 1
        if quote == "`" and " " in text[start + 1 : end]:  # a command
            return start + 1
        return self.one(kind, start + 1, end)

    def list(self, kind: str, start: int) -> int:
        """Masks what is in brackets after a name."""
        text, closing = self.text, _CLOSING[self.text[start]]
        end = start + 1
        while end < len(text) and text[end] not in (closing, "\n"):
            end += 1
        inside = text[start + 1 : end].strip("\"' ,\\")
        special = kind == "token" and end < len(text) and plain(kind, text[start : end + 1]) and "'" not in inside
        return end if plain(kind, inside) or special else self.mask(start + 1, end)

    def one(self, kind: str, start: int, end: int) -> int:
        """Masks one value."""
        value = self.text[start:end]
        if start >= end or plain(kind, value) or reference(value):
            return max(start, end)
        return self.mask(start, end)

    def url(self, i: int) -> int:
        """Masks the password of an address."""
        text, start = self.text, i + 3
        if start >= self.address[1]:
            end = self.match(_ADDRESS, start)
            self.address = (text.rfind("@", start, end), end)
        last, end = self.address
        if last < start:
            return start
        slash = text.find("/", start, end)
        slash = end if slash < 0 else slash
        at = last if last < slash else text.rfind("@", start, slash)
        if at < 0:  # a password can have a slash that should be written %2F; a port is a number
            _, colon, after = text[start:slash].partition(":")
            if not colon or not after.strip(DIGITS) or text[start] == "[":
                return start
            at = last
        name, given, word = text[start:at].partition(":")
        m = _SCHEME_NAME.search(text, max(i - 6, 0), i)
        is_bare = m is not None and m[0].lower() in BARE
        if given and (word in ("", "x-oauth-basic") or word == name == MASK):
            return self.mask(start, at) if is_bare and name else at
        if given and not reference(word):
            return self.mask(start if _is_key(name) else start + len(name) + 1, at)
        if not given and (is_bare or _is_key(name)) and not text.startswith(("sha256:", "sha512:"), at + 1) and not reference(name):
            return self.mask(start, at)
        return at

    def at(self, i: int) -> int:
        """Masks the password of name:password@host without a scheme."""
        text = self.text
        if text.startswith("@", self.match(_AHEAD, i + 1)):  # the password contains one
            return i + 1
        start = i
        while start > self.done and text[start - 1] not in "/= \t\n\r\"'`,;&|()[]{}<>\\\0":
            start -= 1
        name, _, word = text[start:i].partition(":")
        if not name or not word.strip(DIGITS) or name == "mailto" or reference(word):
            return i + 1
        if i + 1 >= len(text) or text[i + 1] not in _ALNUM and text[i + 1] != "[" or text.startswith(("sha256:", "sha512:"), i + 1):
            return i + 1
        self.mask(i - len(word), i)
        return i + 1


def _is_key(name: str) -> bool:
    """Whether a name is a key rather than that of a person or a program."""
    return len(name) >= 20 and any(c in DIGITS for c in name) and all(c in _ALNUM or c == "_" for c in name)
