"""Masks keys, tokens and passwords in command lines, by the rule of Go's internal/secret.

Both are tested by the same table, internal/secret/testdata/cases.jsonl.
"""

from __future__ import annotations

import re
from typing import Callable, List, Tuple

MASK = "***"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PASSWORD = _set("password passwords passwd passphrase passcode passkey secret secrets jwt bearer")
_KEY = _set("apikey apikeys accesskey secretkey authkey accountkey")
_TOKEN = _set("token authtoken accesstoken apitoken hftoken pass")
_FILE = _set("credential credentials creds privatekey")
_HEADER = _set("authorization cookie")
_LOGIN = _set("auth userpwd")
_GLUED = ("password", "passwd", "passphrase", "apikey", "authtoken", "accesstoken", "secretkey", "accesskey", "clientsecret")
_KEYS = _set(
    "api access secret auth account encryption master admin license signing shared subscription service "
    "wandb openai anthropic azure hf huggingface comet neptune mistral cohere gemini google groq deepseek together replicate langsmith langchain "
    "tavily serpapi pinecone ngc nvidia fireworks openrouter xai perplexity mlflow aws s3 gcp minio litellm"
)
_TEXTS = _set(
    "bos eos pad unk sep cls mask image video audio stop start end begin special max min num per next last first prefix suffix new "
    "draft think thinking reasoning answer response prompt assistant system tool call text time extra byte bytes single each every block sos eot eom eop bot "
    "placeholder separator input output generated cached speech vision latent register class position control fim middle trigger rare initializer instance "
    "concept modifier by to in add target"
)
_ACCOUNTS = _set(
    "api auth access secret bearer refresh session db database smtp mysql pg redis ftp mail email user admin proxy root login http mongo rabbitmq"
)
_SWITCHES = _set("no disable enable without require requires has skip allow is show print hide")
_PLAIN = frozenset(["", MASK, "None", "none", "null", "nil", "True", "true", "False", "false", "undefined", "NULL", "...", "…", "-", "="])
# By program: the kind of the value, flags before it, flags with which it is written in one.
_PROGRAMS = {
    "curl": ("login", ("-u", "--user", "-U", "--proxy-user"), ("-u", "-U")),
    "http": ("login", ("-a",), ()),
    "sshpass": ("password", ("-p",), ("-p",)),
    "redis-cli": ("password", ("-a",), ()),
    "mysql": ("password", (), ("-p",)),
    "mysqldump": ("password", (), ("-p",)),
    "mariadb": ("password", (), ("-p",)),
    "llama-server": ("password", ("-hft",), ()),
    "llama-cli": ("password", ("-hft",), ()),
    "wandb": ("", (), ()),
    "vllm": ("", (), ()),
}

_FORM = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?P<mixed>hf_|api_org_|gh[pousr]_|AKIA|ASIA)(?=[A-Za-z]*[0-9A-Z])[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}|glpat-[\w.-]{16,}|sk_(?:live|test)_[A-Za-z0-9]{10,}|xox[baps]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{20,}|nvapi-[\w-]{20,}|gsk_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}"
    r"|tvly-[\w-]{16,}|wandb_v1_[\w-]{16,}|dckr_pat_[\w-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|eyJ[\w.-]{30,}"
    r"|hooks\.slack\.com/services/[A-Za-z0-9/]{10,}|discord\.com/api/webhooks/[\w/-]{10,}"
    r"|sk-(?=[\w-]*?(?=[A-Za-z]*[0-9A-Z])[A-Za-z0-9]{10})[\w-]{16,})"
)
_END = r"\s\"'`,;&|()\[\]{}<>\\\0"
_ADDRESS = re.compile(rf"(?P<scheme>\w*)://(?P<user>[^{_END}/?#@:]*)(?::(?P<word>[^{_END}?#]*))?@(?=[^{_END}@]*)")
_PLACE = re.compile(rf"(?<![^{_END}/=])(?!mailto:)(?P<user>[^{_END}/=:]+):(?![0-9]+@)(?P<word>[^{_END}/=]+)@(?=[\w\[])(?!sha(?:256|512):)(?![^{_END}/]*@)")
_HEADER_TEXT = re.compile(r"(?i)(?P<name>(?:proxy-)?authorization|(?:set-)?cookie)(?P<between>[\"'\\]*\s*[:=]\s*[\"']?(?:(?:bearer|basic|token|digest|apikey) )?)(?P<value>[^\r\n\"'`]+)")
_BEARER = re.compile(rf"(?i)\b(bearer )(?=[^{_END}]*[0-9])[^{_END}]{{8,}}")
_PAIR = re.compile(
    rf"(?P<name>[\w.-]{{2,64}})(?P<quoted>[\"'`\]\\]*)(?P<between> ?(?:=(?!=)|:(?!//)) ?\\?)(?:(?P<quote>[\"'`])(?P<inside>(?:(?!(?P=quote)|\\).)*)|(?P<list>[\[({{])(?P<items>[^\])}}\n]*)|(?P<value>\$\{{\w+\}}|[^{_END}]+))"
)
_FLAG = re.compile(rf"(?<![\w-])(?P<flag>--[\w.-]+) +(?:(?P<quote>[\"'])(?P<inside>[^\"']*)|(?P<value>\$\{{\w+\}}|[^{_END}]+))")
_LOOKS = re.compile(r"-[A-Za-z](=.*)?$|--$|--[a-z][a-z0-9_.-]*(=.*)?$", re.DOTALL)
_REFERENCE = re.compile(r"\$\{?[A-Za-z_]\w*\}?$")


def _words(name: str) -> List[str]:
    name = re.sub(r"([a-z])([A-Z])|([A-Z])(?=[A-Z][a-z](?!$))", lambda m: (m[1] + "-" + m[2]) if m[1] else m[3] + "-", name[-64:])
    return [w for w in re.split(r"[^a-z0-9]+", name.lower()) if w]


def _kind(name: str) -> str:
    """The kind of secret that a name says its value is, empty for none."""
    words = _words(name)
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return ""
    last, before = words[-1].rstrip("0123456789"), words[-2] if len(words) > 1 else ""
    if last in ("key", "keys"):
        return "file" if before == "private" else "key" if before in _KEYS else ""
    if last == "id":
        return "key" if words[-3:-1] == ["access", "key"] else ""
    if last == "token" and before in _TEXTS or last == "pass" and before and before not in _ACCOUNTS:
        return ""
    if last in ("tokens", "pwd"):
        return "password" if before in _ACCOUNTS else ""
    kinds = ((_PASSWORD, "password"), (_KEY, "key"), (_TOKEN, "token"), (_FILE, "file"), (_HEADER, "header"), (_LOGIN, "login"))
    for names, kind in kinds:
        if last in names:
            return kind
    return "password" if last.endswith(_GLUED) else ""


def _plain(kind: str, value: str) -> bool:
    """Whether a value is no secret of the kind."""
    if value in _PLAIN:
        return True
    if kind == "token":
        return len(value) < 10 and not value.strip("0123456789.-+") or value[0] + value[-1] in ("<>", "[]")
    if kind == "file":
        return value.startswith(("/", "./", "~/")) or value.endswith((".pem", ".key", ".json", ".crt", ".yaml", ".yml", ".txt"))
    if kind == "login":
        return ":" not in value or not value.strip("0123456789:") or value.endswith(":" + MASK)
    return False


def text(line: str) -> str:
    """A text without its secrets."""

    def address(m: "re.Match[str]") -> str:
        if m["word"] is not None:
            if not m["word"] or "/" in m["word"] and m["word"].split("/")[0].isdigit():
                return m[0]
            return f"{m['scheme']}://{m['user']}:{MASK}@"
        return f"{m['scheme']}://{MASK}@" if m["scheme"] in ("http", "https") and m["user"] else m[0]

    line = _HEADER_TEXT.sub(lambda m: m[0] if m["value"] in _PLAIN or _REFERENCE.match(m["value"]) else m["name"] + m["between"] + MASK, line)
    line = _each(_FLAG, "flag", _is_flag, _each(_PAIR, "between", _is_pair, line))
    line = _BEARER.sub(r"\g<1>" + MASK, _FORM.sub(MASK, line))
    return _PLACE.sub(lambda m: f"{m['user']}:{MASK}@", _ADDRESS.sub(address, line))


def _each(pattern: "re.Pattern[str]", before: str, secret: Callable[["re.Match[str]", str], bool], line: str) -> str:
    """Masks the values that are secrets; names can stand in a value that is none."""
    out, done = "", 0
    m = pattern.search(line)
    while m:
        part = next(name for name in ("inside", "items", "value") if name in pattern.groupindex and m[name] is not None)
        if secret(m, m[part]):
            out, done = out + line[done : m.start(part)] + MASK, m.end(part)
            m = pattern.search(line, done)
        else:
            m = pattern.search(line, m.end(before))
    return out + line[done:]


def _is_pair(m: "re.Match[str]", value: str) -> bool:
    kind, between = _kind(m["name"]), m["between"]
    if not kind or kind == "header":
        return False
    if ":" in between and not m["quoted"]:
        simple = kind != "password" and m["name"].islower() and m["name"].isalpha()  # "unexpected token: 5"
        if simple or not (between.endswith(" ") or m["quote"]):
            return False
    if between.startswith("=") and between.endswith(" ") and not m["quoted"]:  # NAME= command
        return False
    return not (_plain(kind, value.strip("\"' ,") if m["list"] else value) or _REFERENCE.match(value))


def _is_flag(m: "re.Match[str]", value: str) -> bool:
    kind = _kind(m["flag"])
    return bool(kind) and _words(m["flag"])[0] not in _SWITCHES and not (_LOOKS.match(value) or _plain(kind, value) or _REFERENCE.match(value))


def args(given: List[str]) -> List[str]:
    """The arguments of a command without their secrets."""
    out: List[str] = []
    program = kind = ""
    many = script = login = setting = False
    for arg in given:
        if kind and not _LOOKS.match(arg):
            out.append(arg if _plain(kind, arg) else MASK)
            kind = kind if many else ""
            continue
        kind, many = "", False
        if script:
            script = False
            out.append(text(arg))
            continue
        if len(arg) > 1 and arg[0] == "-":
            script = arg[1] != "-" and arg[-1] == "c" and len(arg) <= 4
            masked, kind = _option(arg, program)
            if kind and arg in _PROGRAMS.get(program, ("", (), ()))[1]:
                program = ""
            many = kind == "key" and program == "vllm"
            out.append(masked)
            continue
        if login:
            login = False
            out.append(MASK)
            continue
        if setting and _kind(arg):
            kind, setting = _kind(arg), False
            out.append(arg)
            continue
        setting = arg == "set"
        name = arg.rsplit("/", 1)[-1]
        login = program == "wandb" and arg == "login"
        if name in _PROGRAMS:
            program = name
        elif name.startswith("vllm."):
            program = "vllm"
        name, equal, value = arg.partition("=")
        if equal and re.match(r"[\w.+/:-]+$", name) and "://" not in name and _kind(name) and not _plain(_kind(name), value):
            out.append(name + "=" + MASK)
        else:
            out.append(text(arg))
    return out


def _option(arg: str, program: str) -> Tuple[str, str]:
    """An option without its secret, and the kind of the value that follows it."""
    name, equal, value = arg.partition("=")
    kind = _kind(name) if re.match(r"[\w.+/:-]+$", name) else ""
    if kind and equal:
        return (arg if _plain(kind, value) else name + "=" + MASK), ""
    if kind and _words(name)[0] not in _SWITCHES:
        return arg, kind
    value_kind, separate, attached = _PROGRAMS.get(program, ("", (), ()))
    if arg in separate:
        return arg, value_kind
    if len(arg) > 2 and arg[:2] in attached and not _plain(value_kind, arg[2:]):
        return arg[:2] + MASK, ""
    return text(arg), ""
