"""The tables of Go's internal/secret, written by its tests: do not edit."""

from __future__ import annotations

from typing import Dict, FrozenSet, NamedTuple, Tuple

LAST: Dict[str, str] = {
    "accesskey": "key",
    "accesstoken": "token",
    "accountkey": "key",
    "apikey": "key",
    "apikeys": "key",
    "apitoken": "token",
    "auth": "login",
    "authkey": "key",
    "authorization": "header",
    "authtoken": "token",
    "bearer": "password",
    "clientsecret": "password",
    "cookie": "header",
    "credential": "file",
    "credentials": "file",
    "creds": "file",
    "hftoken": "token",
    "jwt": "password",
    "pass": "token",
    "passcode": "password",
    "passkey": "password",
    "passphrase": "password",
    "passwd": "password",
    "password": "password",
    "passwords": "password",
    "privatekey": "file",
    "pw": "token",
    "pwd": "file",
    "secret": "password",
    "secretkey": "key",
    "secrets": "password",
    "token": "token",
    "userpwd": "login",
}


def _words(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


GLUED = tuple("password passwd passphrase apikey authtoken accesstoken secretkey accesskey clientsecret".split())
QUALIFIERS = _words("b64 backup base64 dev old plaintext primary prod production raw secondary staging str string test val value")
KEYS = _words("access account admin anthropic api auth aws azure cohere comet deepseek encryption fireworks gcp gemini google groq hf huggingface langchain langsmith license litellm master minio mistral mlflow neptune ngc nvidia openai openrouter perplexity pinecone replicate s3 secret serpapi service shared signing subscription tavily together wandb xai")
COLUMNS = _words("bucket cache col column config data dict field foreign group hash image index input join json label lookup map object option order output partition primary prompt pub public range registry routing row search setting sort state target text unique")
TEXTS = _words("add answer assistant audio begin block bos bot by byte bytes cached call class cls concept control draft each end eom eop eos eot every extra fim first generated image in initializer input instance last latent mask max middle min modifier new next num output pad per placeholder position prefix prompt rare reasoning register response sep separator single sos special speech start stop suffix system target text think thinking time to tool trigger unk video vision")
ACCOUNTS = _words("access admin api auth azure basic bearer become database db devops docker email ext ftp gh git github gitlab http login mail mongo mysql personal pg proxy rabbitmq redis refresh root secret session smtp sudo user")
SWITCHES = _words("allow disable enable has hide is no print require requires show skip without")
PARAMETERS = _words("auth code key pass pwd session sid sig signature")
TYPES = _words("annotated any bytes classvar final object optional secretbytes secretstr str string text union")
BARE = _words("amqp amqps http https kafka mqtt mqtts nats redis rediss ws wss")
CONFIGURES = _words("config configure modify")
CHANGES = _words("add change reset set update")
FORMS: Tuple[Tuple[str, int, str], ...] = (
    ("sk-", 16, "-_"),
    ("sk_live_", 10, ""),
    ("sk_test_", 10, ""),
    ("rk_live_", 10, ""),
    ("hf_", 16, ""),
    ("api_org_", 16, ""),
    ("ghp_", 16, ""),
    ("gho_", 16, ""),
    ("ghu_", 16, ""),
    ("ghs_", 16, ""),
    ("ghr_", 16, ""),
    ("github_pat_", 16, "_"),
    ("glpat-", 16, "-_."),
    ("xoxb-", 10, "-"),
    ("xoxp-", 10, "-"),
    ("xoxa-", 10, "-"),
    ("xoxs-", 10, "-"),
    ("xapp-", 10, "-"),
    ("AKIA", 16, ""),
    ("ASIA", 16, ""),
    ("AIza", 30, "-_"),
    ("ya29.", 20, "-_"),
    ("nvapi-", 20, "-_"),
    ("gsk_", 20, ""),
    ("r8_", 20, ""),
    ("pplx-", 20, ""),
    ("xai-", 20, ""),
    ("tvly-", 16, "-_"),
    ("wandb_v1_", 16, "_-"),
    ("dckr_pat_", 16, "_-"),
    ("npm_", 30, ""),
    ("pypi-", 30, "-_"),
    ("dop_v1_", 30, ""),
    ("lsv2_", 16, "_"),
    ("eyJ", 30, "-_."),
    ("hooks.slack.com/services/", 10, "/"),
    ("discord.com/api/webhooks/", 10, "/-_"),
)


class Program(NamedTuple):
    subcommand: str
    value: str
    separate: Tuple[str, ...]
    attached: Tuple[str, ...]
    clusters: str
    first: int
    pairs: bool
    many: bool


PROGRAMS: Dict[str, Tuple[Program, ...]] = {
    "7z": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "7za": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "7zr": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "az": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "bcp": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "beeline": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "buildah": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "cqlsh": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "crane": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "curl": (
        Program("", "login", tuple("-u --user -U --proxy-user -E --cert".split()), tuple("-u -U -E".split()), "sSfkLvigGIOjJRlnNpqaB#0146", 0, False, False),
        Program("", "password", tuple("-b".split()), tuple("-b".split()), "sSfkLvigGIOjJRlnNpqaB#0146", 0, False, False),
    ),
    "docker": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "doppler": (
        Program("secrets set", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "etcdctl": (
        Program("", "login", tuple("--user".split()), tuple("".split()), "", 0, False, False),
    ),
    "fly": (
        Program("secrets set", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "flyctl": (
        Program("secrets set", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "gh": (
        Program("secret set", "password", tuple("-b --body".split()), tuple("".split()), "", 0, False, False),
    ),
    "heroku": (
        Program("config:set", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "htpasswd": (
        Program("", "", tuple("".split()), tuple("".split()), "", 3, False, False),
    ),
    "http": (
        Program("", "login", tuple("-a".split()), tuple("".split()), "", 0, False, False),
    ),
    "https": (
        Program("", "login", tuple("-a".split()), tuple("".split()), "", 0, False, False),
    ),
    "influx": (
        Program("", "password", tuple("-t".split()), tuple("".split()), "", 0, False, False),
    ),
    "ipmitool": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "keydb-cli": (
        Program("", "password", tuple("-a".split()), tuple("".split()), "", 0, False, False),
    ),
    "kubectl": (
        Program("create secret", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "ldapadd": (
        Program("", "password", tuple("-w".split()), tuple("-w".split()), "", 0, False, False),
    ),
    "ldapdelete": (
        Program("", "password", tuple("-w".split()), tuple("-w".split()), "", 0, False, False),
    ),
    "ldapmodify": (
        Program("", "password", tuple("-w".split()), tuple("-w".split()), "", 0, False, False),
    ),
    "ldapsearch": (
        Program("", "password", tuple("-w".split()), tuple("-w".split()), "", 0, False, False),
    ),
    "ldapwhoami": (
        Program("", "password", tuple("-w".split()), tuple("-w".split()), "", 0, False, False),
    ),
    "lftp": (
        Program("", "login", tuple("-u -U".split()), tuple("-u -U".split()), "", 0, False, False),
    ),
    "llama-cli": (
        Program("", "password", tuple("-hft".split()), tuple("".split()), "", 0, False, False),
    ),
    "llama-server": (
        Program("", "password", tuple("-hft".split()), tuple("".split()), "", 0, False, False),
    ),
    "login(": (
        Program("", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "machine": (
        Program("login password", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "mariadb": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mariadb-admin": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mariadb-dump": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mc": (
        Program("alias set", "", tuple("".split()), tuple("".split()), "", 3, False, False),
        Program("host add", "", tuple("".split()), tuple("".split()), "", 3, False, False),
    ),
    "modal": (
        Program("secret create", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "mongo": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongodump": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongoexport": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongoimport": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongorestore": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongosh": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongostat": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mongotop": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mosquitto_pub": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "mosquitto_sub": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "mycli": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysql": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqladmin": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqlbinlog": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqlcheck": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqldump": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqlimport": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqlshow": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "mysqlslap": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "nerdctl": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "ngrok": (
        Program("authtoken", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "oc": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
        Program("create secret", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "openssl": (
        Program("", "password", tuple("-passin -passout -pass -k".split()), tuple("".split()), "", 0, False, False),
    ),
    "oras": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "osql": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "podman": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "poetry": (
        Program("config", "", tuple("".split()), tuple("".split()), "", 2, False, False),
    ),
    "prefect": (
        Program("cloud login", "password", tuple("-k --key".split()), tuple("".split()), "", 0, False, False),
    ),
    "rabbitmqadmin": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "rabbitmqctl": (
        Program("add_user", "", tuple("".split()), tuple("".split()), "", 2, False, False),
    ),
    "rar": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "rclone": (
        Program("obscure", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "redis-cli": (
        Program("", "password", tuple("-a".split()), tuple("".split()), "", 0, False, False),
    ),
    "regctl": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "rpcclient": (
        Program("", "login", tuple("-u -U".split()), tuple("-u -U".split()), "", 0, False, False),
    ),
    "set-password": (
        Program("", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "smbclient": (
        Program("", "login", tuple("-u -U".split()), tuple("-u -U".split()), "", 0, False, False),
    ),
    "sqlcmd": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "ssh-keygen": (
        Program("", "password", tuple("-N -P".split()), tuple("".split()), "", 0, False, False),
    ),
    "sshpass": (
        Program("", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "twine": (
        Program("login", "password", tuple("-p".split()), tuple("-p".split()), "", 0, False, False),
        Program("upload", "password", tuple("-p".split()), tuple("".split()), "", 0, False, False),
    ),
    "unrar": (
        Program("", "password", tuple("".split()), tuple("-p".split()), "", 0, False, False),
    ),
    "unzip": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
    "valkey-cli": (
        Program("", "password", tuple("-a".split()), tuple("".split()), "", 0, False, False),
    ),
    "vastai": (
        Program("set api-key", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "vault": (
        Program("login", "", tuple("".split()), tuple("".split()), "", 1, False, False),
        Program("kv put", "", tuple("".split()), tuple("".split()), "", 0, True, False),
        Program("write", "", tuple("".split()), tuple("".split()), "", 0, True, False),
    ),
    "vllm": (
        Program("", "", tuple("".split()), tuple("".split()), "", 0, False, True),
    ),
    "vsql": (
        Program("", "password", tuple("-w".split()), tuple("-w".split()), "", 0, False, False),
    ),
    "wandb": (
        Program("login", "", tuple("".split()), tuple("".split()), "", 1, False, False),
    ),
    "xh": (
        Program("", "login", tuple("-a".split()), tuple("".split()), "", 0, False, False),
    ),
    "zip": (
        Program("", "password", tuple("-P".split()), tuple("-P".split()), "", 0, False, False),
    ),
}
