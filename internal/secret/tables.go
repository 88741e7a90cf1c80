package secret

import (
	"maps"
	"slices"
	"strings"
)

// The tables of this file are written into the Python module by the tests, with -update.

// A kind is what a name says of its value.
type kind string

const (
	none     kind = ""
	password kind = "password" // whatever it is
	key      kind = "key"      // of an API
	token    kind = "token"    // unless it is a token of a text: a number, or a word such as <pad>
	file     kind = "file"     // unless it is the path of a file, or a number
	maybe    kind = "maybe"    // unless it is a path, a number, an address or a word of small letters
	header   kind = "header"   // of HTTP: everything up to the end of the line
	login    kind = "login"    // name:password
)

// last are names, or the last word of names, whose values are secrets.
var last = kinds(map[kind]string{
	password: "password passwords passwd passphrase passcode passkey secret secrets clientsecret jwt bearer",
	key:      "apikey apikeys accesskey secretkey authkey accountkey",
	token:    "token authtoken accesstoken apitoken hftoken pass pw",
	file:     "credential credentials creds privatekey pwd",
	header:   "authorization cookie",
	login:    "auth userpwd",
})

// glued are ends of words that are written together, as in PGPASSWORD.
var glued = strings.Fields("password passwd passphrase apikey authtoken accesstoken secretkey accesskey clientsecret")

// qualifiers are words after a name that say which one it is, as in API_KEY_PROD.
var qualifiers = words("prod production dev staging test backup primary secondary old value val string str base64 b64 plaintext raw")

// keys are the words before "key" that make it a secret. A key of anything else is a
// column, a cache's or a sort order's.
var keys = words("api access secret auth account encryption master admin license signing shared subscription service " +
	"wandb openai anthropic azure hf huggingface comet neptune mistral cohere gemini google groq deepseek together replicate langsmith langchain " +
	"tavily serpapi pinecone ngc nvidia fireworks openrouter xai perplexity mlflow aws s3 gcp minio litellm")

// columns are the words before KEY that make a variable of the environment no secret.
var columns = words("sort partition primary foreign cache public pub row column col group index hash registry dict map lookup unique search data json " +
	"image text input output prompt label target order join routing range field object state bucket config option setting")

// texts are the words before "token" that make it one of a text, or of a model's vocabulary.
var texts = words("bos eos pad unk sep cls mask image video audio stop start end begin special max min num per next last first prefix suffix new " +
	"draft think thinking reasoning answer response prompt assistant system tool call text time extra byte bytes single each every block sos eot eom eop bot " +
	"placeholder separator input output generated cached speech vision latent register class position control fim middle trigger rare initializer instance " +
	"concept modifier by to in add target")

// accounts are the words before "tokens", "pass", "pwd" and "pat" that make them secrets.
var accounts = words("api auth access secret bearer refresh session db database smtp mysql pg redis ftp mail email user admin proxy root login http mongo rabbitmq " +
	"become sudo basic github gh gitlab git azure devops ext personal docker")

// switches are the first words of flags that have no value, or one that is no secret.
var switches = words("no disable enable without require requires has skip allow is show print hide")

// parameters are names whose values are secrets among the parameters of an address.
var parameters = words("key sig signature code auth pass pwd session sid")

// types are what stands between a name and its value in code, or in the place of the value.
var types = words("str bytes string secretstr secretbytes optional union final any text object annotated classvar")

// bare are schemes of addresses in which a name alone, before "@", is a token.
var bare = words("http https ws wss amqp amqps redis rediss nats mqtt mqtts kafka")

// forms are how the secrets of known services begin, and how many bytes follow at least.
// A form is found where a word begins.
var forms = []struct {
	prefix string
	min    int
	also   string // bytes that may follow besides letters and digits
}{
	{"sk-", 16, "-_"}, {"sk_live_", 10, ""}, {"sk_test_", 10, ""}, {"rk_live_", 10, ""}, // OpenAI, Anthropic, OpenRouter, Stripe
	{"hf_", 16, ""}, {"api_org_", 16, ""}, // Hugging Face
	{"ghp_", 16, ""}, {"gho_", 16, ""}, {"ghu_", 16, ""}, {"ghs_", 16, ""}, {"ghr_", 16, ""}, {"github_pat_", 16, "_"}, {"glpat-", 16, "-_."},
	{"xoxb-", 10, "-"}, {"xoxp-", 10, "-"}, {"xoxa-", 10, "-"}, {"xoxs-", 10, "-"}, {"xapp-", 10, "-"},
	{"AKIA", 16, ""}, {"ASIA", 16, ""}, // Amazon
	{"AIza", 30, "-_"}, {"ya29.", 20, "-_"}, // Google
	{"nvapi-", 20, "-_"}, {"gsk_", 20, ""}, {"r8_", 20, ""}, {"pplx-", 20, ""}, {"xai-", 20, ""}, {"tvly-", 16, "-_"},
	{"wandb_v1_", 16, "_-"}, {"dckr_pat_", 16, "_-"}, {"npm_", 30, ""}, {"pypi-", 30, "-_"}, {"dop_v1_", 30, ""}, {"lsv2_", 16, "_"},
	{"eyJ", 30, "-_."},                       // a JSON web token
	{"hooks.slack.com/services/", 10, "/"},   // whoever knows the address may post
	{"discord.com/api/webhooks/", 10, "/-_"}, // likewise
}

// A program has flags, or places, for secrets that their names do not give away.
type program struct {
	names      string // of the program, as its last part is written
	subcommand string // after which the rest holds: its words
	value      kind   // of the flags
	separate   string // flags whose value is the next argument
	attached   string // flags whose value can follow without a space
	clusters   string // flags of one letter without a value, which can stand before one of attached or separate: -su name:password
	from       int    // from which argument without a dash each can be a secret, counted from 1; 0 for none
	pairs      bool   // what follows "=" is a secret, whatever its name
	many       bool   // flags for keys take several
}

var programs = []program{
	{names: "vllm", many: true},
	{names: "curl", value: login, separate: "-u --user -U --proxy-user -E --cert", attached: "-u -U -E", clusters: "sSfkLvigGIOjJRlnNpqaB#0146"},
	{names: "curl", value: password, separate: "-b", attached: "-b", clusters: "sSfkLvigGIOjJRlnNpqaB#0146"},
	{names: "http https xh", value: login, separate: "-a"},
	{names: "lftp smbclient rpcclient", value: login, separate: "-u -U", attached: "-u -U"},
	{names: "etcdctl", value: login, separate: "--user"},
	{names: "sshpass", value: password, separate: "-p", attached: "-p"},
	{names: "redis-cli valkey-cli keydb-cli", value: password, separate: "-a"},
	{names: "mysql mysqldump mysqladmin mysqlimport mysqlslap mysqlcheck mysqlshow mysqlbinlog mariadb mariadb-dump mariadb-admin mycli", value: password, attached: "-p"},
	{names: "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop cqlsh beeline rabbitmqadmin", value: password, separate: "-p", attached: "-p"},
	{names: "sqlcmd bcp osql mosquitto_pub mosquitto_sub zip unzip ipmitool", value: password, separate: "-P", attached: "-P"},
	{names: "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami vsql", value: password, separate: "-w", attached: "-w"},
	{names: "7z 7za 7zr rar unrar", value: password, attached: "-p"},
	{names: "openssl", value: password, separate: "-passin -passout -pass -k"},
	{names: "ssh-keygen", value: password, separate: "-N -P"},
	{names: "llama-server llama-cli", value: password, separate: "-hft"},
	{names: "influx", value: password, separate: "-t"},
	{names: "docker podman nerdctl buildah crane oras regctl az oc twine", subcommand: "login", value: password, separate: "-p", attached: "-p"},
	{names: "twine", subcommand: "upload", value: password, separate: "-p"},
	{names: "gh", subcommand: "secret set", value: password, separate: "-b --body"},
	{names: "prefect", subcommand: "cloud login", value: password, separate: "-k --key"},
	{names: "machine", subcommand: "login password", from: 1}, // a line of .netrc
	{names: "poetry", subcommand: "config", from: 2},
	{names: "login(", from: 1},       // a function in code
	{names: "set-password", from: 1}, // and subcommands such as add-token
	{names: "wandb vault", subcommand: "login", from: 1},
	{names: "ngrok", subcommand: "authtoken", from: 1},
	{names: "vastai", subcommand: "set api-key", from: 1},
	{names: "rclone", subcommand: "obscure", from: 1},
	{names: "mc", subcommand: "alias set", from: 3},
	{names: "mc", subcommand: "host add", from: 3},
	{names: "htpasswd", from: 3},
	{names: "rabbitmqctl", subcommand: "add_user", from: 2},
	{names: "kubectl oc", subcommand: "create secret", pairs: true},
	{names: "modal", subcommand: "secret create", pairs: true},
	{names: "fly flyctl doppler", subcommand: "secrets set", pairs: true},
	{names: "heroku", subcommand: "config:set", pairs: true},
	{names: "vault", subcommand: "kv put", pairs: true},
	{names: "vault", subcommand: "write", pairs: true},
}

// programsOf are the rules of each program by its name.
var programsOf = func() map[string][]*program {
	out := map[string][]*program{}
	for i := range programs {
		for _, name := range strings.Fields(programs[i].names) {
			out[name] = append(out[name], &programs[i])
		}
	}
	return out
}()

// changes are first words of subcommands whose arguments are secrets, if their names say so.
var changes = words("set reset change add update")

// configures are commands after which a setting's name and its value are two arguments.
var configures = words("config configure modify")

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

func kinds(of map[kind]string) map[string]kind {
	out := map[string]kind{}
	for _, k := range slices.Sorted(maps.Keys(of)) {
		for _, w := range strings.Fields(of[k]) {
			out[w] = k
		}
	}
	return out
}
