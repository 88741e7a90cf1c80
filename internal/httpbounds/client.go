// Package httpbounds is the one policy for HTTP: where requests may go that strandline
// sends, which can have a key, and what requests may cost that it answers.
package httpbounds

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"strandline/internal/secret"
)

// maxHeader bounds the header of a request or an answer, in bytes.
const maxHeader = 64 << 10

// A Client sends requests. It follows no redirect, and sends no key in the clear to a
// proxy. How long a request may take is its context's matter.
type Client struct {
	http    http.Client
	maxBody int64
}

// NewClient returns a client that keeps at most some connections to a server open, and
// reads at most some bytes of an answer.
func NewClient(connections int, maxBody int64) *Client {
	const patience = 10 * time.Second
	return &Client{maxBody: maxBody, http: http.Client{
		CheckRedirect: func(next *http.Request, via []*http.Request) error { return &Redirect{pointsTo(next.URL)} },
		Transport: &http.Transport{
			Proxy:       proxy,
			DialContext: (&net.Dialer{Timeout: 3 * patience, KeepAlive: 3 * patience}).DialContext, TLSHandshakeTimeout: patience,
			MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxHeader,
		},
	}}
}

// proxy is that of the environment, unless a key could be read there: in a request by
// HTTPS it cannot.
func proxy(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" && hasKey(r) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// hasKey reports whether a request has a key, a token or a password in its address or in
// a header.
func hasKey(r *http.Request) bool {
	for name, values := range r.Header {
		for _, value := range values {
			if header := name + ": " + value; secret.Text(header) != header {
				return true
			}
		}
	}
	address := r.URL.String()
	return r.Header.Get("Authorization") != "" || r.URL.User != nil || secret.Text(address) != address
}

// A Redirect is the error for an answer that points to another address.
type Redirect struct {
	To string // without name, password and parameters
}

func (r *Redirect) Error() string {
	return fmt.Sprintf("the server redirects to %s, and strandline does not follow, as keys would go there: give that address if you trust it", r.To)
}

// pointsTo is an address without what can be a secret in it.
func pointsTo(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return secret.Text(bare.String())
}

// Do sends a request. The error does not contain its address, in which a password can be;
// it is a [Redirect] if the answer points to another one.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.http.Do(r)
	if err != nil {
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, withoutSecrets(err)
	}
	answer.Body = &body{answer.Body, c.maxBody}
	return answer, nil
}

// withoutSecrets is an error whose text has none: net/http repeats a proxy's address, and
// one to which an answer points, if it cannot read them.
func withoutSecrets(err error) error {
	if text := secret.Text(err.Error()); text != err.Error() {
		return &masked{err, text}
	}
	return err
}

type masked struct {
	error
	text string
}

func (m *masked) Error() string { return m.text }
func (m *masked) Unwrap() error { return m.error }

// CloseIdle closes connections that are not in use.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// body is an answer of bounded size.
type body struct {
	io.ReadCloser
	left int64
}

// errLarge is the error for an answer that is too large.
var errLarge = errors.New("the answer is too large")

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)]) // one more tells whether there is more
	if b.left -= int64(n); b.left < 0 {
		return n - 1, errLarge
	}
	return n, err
}
