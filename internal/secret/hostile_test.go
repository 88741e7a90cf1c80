package secret

import (
	"strings"
	"testing"
)

// hostile are pieces of texts that are read again and again by a reader that looks back,
// or ahead, from each of them.
var hostile = []string{
	"a", " ", "=", ":", "@", "://", "a@", "a:b@", "http://", "http://a:b@", "x://u", "--token ", "--token\t", "--token\n", "--token\\\n", "token=", "token=(", "token=a(", "token=[", "token: ", "password: str",
	"'", "\"", "`", "\\", "$'", "$(", "(", ")", "[\"", "\",\"", "f(\"A_KEY\",", "\"token\"", "# ", "'a' ", "\"a\"b", "a'b'", "\\\n", "{", "${", "curl -u ", "curl -u a:b ", "mysql -psecret ", "wandb login ", "sh -c '", "bash -c \"", "\\\"", "eyJ.", "sk-a-", "hf_", "Bearer ", "authorization: ", "?sig=", "&key=a1", ";", "&& ", "-c ", "a=b ", "A_KEY=", "ya29.", "--from-literal=a=",
}

// TestHostile masks long texts: it ends within the time of all tests only if none
// of them takes time that grows with the square of its length.
func TestHostile(t *testing.T) {
	const size = 1 << 18
	for _, piece := range hostile {
		Text(strings.Repeat(piece, size/len(piece)))
	}
}
