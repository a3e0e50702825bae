package httpapi_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// watched starts a server that reports requests in plaintext.
func watched(t *testing.T, proxies ...netip.Prefix) (address string, client *http.Client, seen chan httpapi.PlaintextRequest) {
	t.Helper()
	lender := httptest.NewTLSServer(nil)
	t.Cleanup(lender.Close)
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen = make(chan httpapi.PlaintextRequest, 10)
	server := httpapi.Server{
		Handler: hello, TrustedProxies: proxies, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		TLS:         &tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12},
		OnPlaintext: func(request httpapi.PlaintextRequest) { seen <- request },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() { cancel(); <-done })
	return listener.Addr().String(), lender.Client(), seen
}

// A key seen in plaintext is told apart from one only reported: a proxy's
// report never counts as the first, nor an outsider's header as anything.
func TestOnPlaintext(t *testing.T) {
	everywhere, nowhere := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")
	for name, c := range map[string]struct {
		proxy  netip.Prefix
		scheme string
		header map[string]string
		status int
		want   *httpapi.PlaintextRequest
	}{
		"our socket":                       {nowhere, "http://", nil, 403, &httpapi.PlaintextRequest{Address: netip.MustParseAddr("127.0.0.1")}},
		"our socket, an outsider's word":   {nowhere, "http://", map[string]string{"X-Forwarded-Proto": "https"}, 403, &httpapi.PlaintextRequest{Address: netip.MustParseAddr("127.0.0.1")}},
		"TLS":                              {nowhere, "https://", nil, 200, nil},
		"TLS, an outsider's word":          {nowhere, "https://", map[string]string{"X-Forwarded-Proto": "http", httpapi.HeaderPlaintext: "1"}, 200, nil},
		"a proxy's word":                   {everywhere, "https://", map[string]string{"X-Forwarded-Proto": "http"}, 403, &httpapi.PlaintextRequest{Forwarded: true, Address: netip.MustParseAddr("127.0.0.1")}},
		"a proxy in plaintext":             {everywhere, "http://", nil, 403, &httpapi.PlaintextRequest{Forwarded: true, Address: netip.MustParseAddr("127.0.0.1")}},
		"a proxy in plaintext that claims": {everywhere, "http://", map[string]string{httpapi.HeaderPlaintext: "1"}, 403, &httpapi.PlaintextRequest{Forwarded: true, Address: netip.MustParseAddr("127.0.0.1")}},
		"a gateway of ours": {everywhere, "https://", map[string]string{httpapi.HeaderPlaintext: "1", "X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https"}, 403,
			&httpapi.PlaintextRequest{Address: netip.MustParseAddr("198.51.100.7")}},
	} {
		t.Run(name, func(t *testing.T) {
			address, client, seen := watched(t, c.proxy)
			request, _ := http.NewRequest(http.MethodPost, c.scheme+address+"/v1/logs", nil)
			request.Header.Set("X-Api-Key", "weir_1")
			request.Header.Set("User-Agent", "curl")
			for name, value := range c.header {
				request.Header.Set(name, value)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != c.status {
				t.Fatalf("status %d, want %d", response.StatusCode, c.status)
			}
			if c.want == nil {
				if len(seen) != 0 {
					t.Errorf("seen %+v", <-seen)
				}
				return
			}
			c.want.Key, c.want.Client = "weir_1", "curl"
			if got := <-seen; got != *c.want {
				t.Errorf("seen %+v, want %+v", got, *c.want)
			}
		})
	}
}

// The answer to plaintext is the same byte for byte, with any key or
// none, except for the request's id and the date; and a connection gets
// one answer, so that nobody tries thousands of keys on it.
func TestPlainAnswersAreTheSame(t *testing.T) {
	address, _, seen := watched(t)
	changing := regexp.MustCompile(`req_[0-9a-f]+|Date: [^\r]+`)
	answer := func(key string) string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		one := "POST /v1/logs HTTP/1.1\r\nHost: weir\r\n" + key + "Content-Length: 0\r\n\r\n"
		_, _ = io.WriteString(conn, one+one)
		text, _ := io.ReadAll(conn)
		return changing.ReplaceAllString(string(text), "")
	}
	none := answer("")
	for _, key := range []string{"x-api-key: weir_1\r\n", "x-api-key: weir_" + "abababababababababababababababababababababababab" + "\r\n"} {
		if got := answer(key); got != none || got == "" {
			t.Errorf("with %q:\n%s\nwithout:\n%s", key, got, none)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d requests were reported, want one for each connection with a key", len(seen))
	}
}
