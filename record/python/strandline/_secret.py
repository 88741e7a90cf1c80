"""Masks keys, tokens and passwords in command lines, by the rule of Go's internal/secret.

Both are tested by the same table, internal/secret/testdata/cases.jsonl. What is said there
of each step is not repeated here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Callable, List, Set, TypeVar

from ._secret_names import DIGITS, MASK, MAX_NAME, is_change, is_name, is_switch, kind_of, looks_like_flag, plain, reference
from ._secret_tables import CONFIGURES, PROGRAMS, Program
from ._secret_values import Span, values

T = TypeVar("T")

_MAX_DEPTH = 4
_MAX_OPEN = 32


def args(given: List[str]) -> List[str]:
    """The arguments of a command without their secrets."""

    def mask(given: List[str]) -> List[str]:
        state = _Arguments()
        return [_apply(arg, state.next(arg)) for arg in given]

    return _settle(list(given), mask)


def text(line: str) -> str:
    """A text without its secrets."""
    return _settle(line, lambda line: _apply(line, _commands(line, 0)))


def _settle(given: T, mask: Callable[[T], T]) -> T:
    """Masks until nothing is taken for a secret."""
    for _ in range(8):
        before, given = given, mask(given)
        if given == before:
            break
    return given


def _apply(line: str, parts: List[Span]) -> str:
    out, done = [], 0
    merged: List[Span] = []
    for start, end in sorted(parts):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        elif start < end:
            merged.append((start, end))
    for start, end in merged:
        out += [line[done:start], MASK]
        done = end
    return "".join(out) + line[done:]


class _Place:
    """Where in a program's arguments the next one stands."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.subcommand = program.subcommand.split()
        self.words = 0


class _Arguments:
    """Those of one command, looked at one after another."""

    def __init__(self, shell: bool = False, depth: int = 0) -> None:
        self.shell, self.depth = shell, depth
        self.reset()

    def reset(self) -> None:
        self.rules: List[_Place] = []
        self.kind = ""
        self.many = self.config = self.script = False

    def holding(self) -> List[_Place]:
        return [place for place in self.rules if not place.subcommand]

    def next(self, arg: str) -> List[Span]:
        """The parts of one argument that are secrets."""
        last = self.last(arg)
        if self.kind and not looks_like_flag(arg):
            kind = self.kind
            self.kind = kind if self.many else ""
            if self.refers(arg):
                return self.text(arg, 0)
            return [] if plain(kind, arg[:last]) else [(0, last)]
        self.kind, self.many = "", False
        if self.script:
            self.script = False
            self.see(arg)
            return self.text(arg, 0)
        if len(arg) > 1 and arg[0] == "-":
            self.script = arg[1] != "-" and arg[-1] == "c" and len(arg) <= 4
            return self.flag(arg)
        if self.config and is_name(arg) and kind_of(arg):
            self.kind, self.config = kind_of(arg), False
            return []
        if self.see(arg):
            return [(0, last)]
        name, equal, value = arg[:last].partition("=")
        if not equal or not is_name(name) or value.startswith("="):
            return self.text(arg, 0)
        kind = "password" if any(place.program.pairs for place in self.holding()) else kind_of(name)
        if kind and not plain(kind, value) and not self.refers(value):
            return [(len(name) + 1, last)]
        return self.text(arg, len(name) + 1)

    def last(self, arg: str) -> int:
        return len(arg.rstrip(",")) if self.shell else len(arg)

    def refers(self, value: str) -> bool:
        return self.shell and reference(value)

    def see(self, arg: str) -> bool:
        """Looks at the name of a program, or one of its words. Whether it stands where a secret does."""
        if arg in ("&&", "||", "|", ";", "&"):
            self.reset()
            return False
        arg = arg[-MAX_NAME:]
        name = arg.rstrip("/").rsplit("/", 1)[-1]
        name = "vllm" if name.startswith("vllm") else "set-password" if is_change(name) else name
        if name in PROGRAMS:
            self.rules = [_Place(program) for program in PROGRAMS[name]]
            return False
        self.config = self.config or arg in CONFIGURES
        secret = False
        for place in self.rules:
            if not place.subcommand:
                place.words += 1
                first = place.program.first
                secret = secret or 0 < first <= place.words and not plain("maybe", arg) and not self.refers(arg)
            elif place.subcommand[0] == arg:
                place.subcommand = place.subcommand[1:]
        return secret

    def flag(self, arg: str) -> List[Span]:
        """The parts of an argument that begins with a dash that are secrets."""
        last = self.last(arg)
        name, equal, value = arg[:last].partition("=")
        named = is_name(name.lstrip("-+"))
        if named and (equal or ":" not in name):
            kind = kind_of(name)
            if kind and equal:
                return [] if plain(kind, value) or self.refers(value) else [(len(name) + 1, last)]
            if kind and not is_switch(name):
                self.kind, self.many = kind, kind == "key" and any(place.program.many for place in self.rules)
                return []
        for place in self.holding():
            rule = place.program
            if rule.pairs and value.find("=") > 0:
                return [(len(name) + 2 + value.index("="), len(arg))]
            skip = 1
            while len(arg) - skip > 1 and arg[skip] != "-" and arg[skip] in rule.clusters:
                skip += 1
            short = "-" + arg[skip:]
            if equal and name in rule.separate:
                return [] if plain(rule.value, value) or self.refers(value) else [(len(name) + 1, len(arg))]
            if short in rule.separate:
                self.kind, self.rules = rule.value, []
                return []
            inside = short[2:]
            if inside and short[:2] in rule.attached and not plain(rule.value, inside) and not _is_port(inside) and not self.refers(inside):
                return [(len(arg) - len(inside), len(arg))]
        return self.text(arg, len(name) + 1 if equal and named else 0)

    def text(self, arg: str, start: int) -> List[Span]:
        """The parts of an argument that are secrets, as any text has them."""
        if not _several(arg[start:]):
            return values(arg)
        return [(a + start, b + start) for a, b in _commands(arg[start:], self.depth + 1)] + values(arg)


def _is_port(value: str) -> bool:
    return ":" in value and not value.strip(DIGITS + ":.")


def _several(line: str) -> bool:
    return any(part in line for part in (" ", "\t", "\n", '","', "','"))


def _commands(line: str, depth: int) -> List[Span]:
    """The parts of a text that are secrets, also in the commands that a shell would read in it."""
    out = values(line)
    if depth > _MAX_DEPTH or not _several(line):
        return out
    state = _Arguments(True, depth)
    stack: List[_Arguments] = []
    backquoted = redirected = False
    reader = _Reader(line)
    while reader.read():
        word = reader.word()
        if word:
            parts: List[Span] = []
            if redirected:  # the name of a file
                parts = state.text(word, 0)
            elif reader.end == ">" and not word.strip(DIGITS):  # 2>
                pass
            elif reader.listed and not reader.quotes:  # an expression
                state.kind = ""
            else:
                parts = state.next(word)
            out += [reader.source(part) for part in parts if part[0] < part[1]]
            redirected = False
        redirected = redirected or reader.end == ">"
        if reader.end == ";":
            state = _Arguments(True, depth)
        elif reader.end in ("(", ")", "`"):
            opens = reader.end == "(" or reader.end == "`" and not backquoted
            if reader.end == "`":
                backquoted = not backquoted
                state.kind = ""
            pushed = opens and len(stack) < _MAX_OPEN
            if pushed:
                stack.append(state)
            state = stack.pop() if not opens and stack else _Arguments(True, depth)
            if pushed and reader.end == "(":
                state.see(word.rsplit(".", 1)[-1] + "(")
    return out


class _Reader:
    """Separates the words of a shell's text."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.next = 0
        self.letters: List[str] = []
        self.at: List[Span] = []
        self.quotes: List[Span] = []
        self.end = ""
        self.comment = self.list = self.listed = False
        self.open: Set[str] = set()

    def word(self) -> str:
        return "".join(self.letters)

    def read(self) -> bool:
        """Reads one word, which can be empty. False at the end of the text."""
        line = self.line
        self.letters, self.at, self.quotes, self.end, self.listed = [], [], [], "", self.list
        if self.next >= len(line):
            return False
        while self.next < len(line):
            i, c = self.next, line[self.next]
            self.next += 1
            if c in " \t\r":
                return True
            if c in "<>\n;|()`":
                self.comment = self.comment and c != "\n"
                self.list = self.begins(self.next) if c == "(" else self.list and c not in ")`"
                self.end = ">" if c in "<>" else ";" if c in "\n;|" else c
                return True
            if c == "&":
                if not (i > 0 and line[i - 1] in "<>" or line.startswith(">", self.next)):
                    self.end = ";"
                return True
            if c == "[":
                self.list = self.list or self.begins(self.next)
                if self.list:
                    return True
            elif c in ",]" and self.list and (self.quotes or not self.letters):
                self.list = c == ","
                return True
            elif c == "#":
                self.comment = self.comment or not self.letters
            elif c == "\\":
                self.next = min(self.next + 1, len(line))
                if line[i + 1 : self.next] != "\n":
                    self.add(i, self.next)
                continue
            elif c in "'\"":
                self.quoted(i, i + 1)
                continue
            elif c == "$" and line.startswith("'", self.next):
                self.next += 1
                self.quoted(i, i + 2)
                continue
            self.add(i, i + 1)
        return True

    def begins(self, i: int) -> bool:
        return self.line.startswith(("'", '"'), i)

    def add(self, start: int, end: int) -> None:
        self.letters.append(self.line[end - 1])
        self.at.append((start, end))

    def quoted(self, start: int, inside: int) -> None:
        """Adds what is in quotes that begin at a place."""
        line, quote, raw = self.line, self.line[inside - 1], self.line[start] == "'"
        count, i = len(self.letters), inside
        closed = not self.comment and line[start] not in self.open
        while closed and i < len(line):
            c = line[i]
            if c == quote:
                self.quotes.append((start, i + 1))
                self.next = i + 1
                return
            escaped = line[i + 1 : i + 2] if c == "\\" and not raw else ""
            if escaped == "\n":
                i += 1
            elif escaped and (quote == "'" or escaped in '"\\$`'):
                self.add(i, i + 2)
                i += 1
            else:
                self.add(i, i + 1)
            i += 1
        del self.letters[count:], self.at[count:]
        if not self.comment:
            self.open.add(line[start])
        for i in range(start, inside):
            self.add(i, i + 1)

    def source(self, part: Span) -> Span:
        """Where a part of the word is in the text. Quotes that it cuts belong to it."""
        start, end = self.at[part[0]][0], self.at[part[1] - 1][1]
        first = bisect_right([q[1] for q in self.quotes], start)
        last = bisect_left([q[0] for q in self.quotes], end) - 1
        if first < last or first == last and (start < self.quotes[first][0] or end > self.quotes[first][1]):
            start, end = min(start, self.quotes[first][0]), max(end, self.quotes[last][1])
        return start, end
