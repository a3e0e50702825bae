package httpapi_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// serve starts a Server around handler; the client trusts its certificate.
func serve(t *testing.T, handler http.Handler, proxies ...netip.Prefix) (address string, client *http.Client) {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // lends its certificate
	t.Cleanup(lender.Close)
	listener, err := httpapi.Listen("127.0.0.1:0")
	testenv.Must(t, err)
	server := httpapi.Server{
		Handler: handler, TrustedProxies: proxies, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		TLS: &tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	})
	return listener.Addr().String(), lender.Client()
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

func TestServerSpeaksTLS(t *testing.T) {
	address, client := serve(t, hello)
	response, err := client.Get("https://" + address + "/")
	testenv.Must(t, err)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "hello" {
		t.Errorf("body = %q, want hello", body)
	}
}

// Plain HTTP gets the same 403 with any key, on a connection that is
// then closed, and never reaches the handler.
func TestServerRefusesPlainHTTP(t *testing.T) {
	address, _ := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a plain request reached the handler") }))
	lines := map[string]string{"": "POST /v1/logs", "x-api-key: weir_1\r\n": "POST /v1/logs", "X-Forwarded-Proto: https\r\n": "GET /",
		"x-a: 1\r\n": "OPTIONS *", "x-b: 1\r\n": "FOO /v1/logs"}
	for key, line := range lines {
		conn, err := net.Dial("tcp", address)
		testenv.Must(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, line+" HTTP/1.1\r\nHost: weir\r\n"+key+"Content-Length: 2\r\n\r\n{}")
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		testenv.Must(t, err)
		var problem struct {
			Code, Message, Detail string
			RequestID             string `json:"request_id"`
		}
		testenv.Must(t, json.NewDecoder(response.Body).Decode(&problem))
		if response.StatusCode != http.StatusForbidden || problem.Code != "https_required" || problem.Message != problem.Detail {
			t.Errorf("with %q: %d %+v, want 403 https_required", key, response.StatusCode, problem)
		}
		if problem.RequestID == "" || problem.RequestID != response.Header.Get("X-Request-Id") {
			t.Errorf("with %q: request_id %q, header %q", key, problem.RequestID, response.Header.Get("X-Request-Id"))
		}
		if response.Header.Get("Strict-Transport-Security") != "" { // means nothing over plain HTTP (RFC 6797, 7.2)
			t.Errorf("with %q: HSTS over plain HTTP", key)
		}
		if response.Header.Get("Location") != "" || !response.Close {
			t.Errorf("with %q: Location %q, close %t; want no redirect and a closed connection", key, response.Header.Get("Location"), response.Close)
		}
		if _, err := reader.ReadByte(); err == nil {
			t.Errorf("with %q: the connection goes on", key)
		}
	}
}

// Only a trusted proxy may end TLS.
func TestServerTrustsItsProxies(t *testing.T) {
	address, _ := serve(t, hello, netip.MustParsePrefix("127.0.0.0/8"))
	request, _ := http.NewRequest(http.MethodGet, "http://"+address+"/", nil)
	request.Header.Set("X-Forwarded-Proto", "https")
	response, err := http.DefaultClient.Do(request)
	testenv.Must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status = %d, want 200", response.StatusCode)
	}
}

// A trusted proxy's report of plaintext counts, even over TLS; two
// contradictory headers count as none.
func TestServerBelievesItsProxies(t *testing.T) {
	address, client := serve(t, hello, netip.MustParsePrefix("127.0.0.0/8"))
	for _, c := range []struct {
		scheme string
		protos []string
		status int
	}{
		{"https://", nil, 200}, {"https://", []string{"https"}, 200}, {"https://", []string{"http"}, 403},
		{"http://", []string{"HTTPS"}, 200}, {"http://", []string{"https", "http"}, 403}, {"http://", nil, 403},
	} {
		request, _ := http.NewRequest(http.MethodGet, c.scheme+address+"/", nil)
		request.Header["X-Forwarded-Proto"] = c.protos
		response, err := client.Do(request)
		testenv.Must(t, err)
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s with X-Forwarded-Proto %q: %d, want %d", c.scheme, c.protos, response.StatusCode, c.status)
		}
	}
}

// A port in use is an error of one clear line.
func TestListenPortInUse(t *testing.T) {
	first, err := httpapi.Listen("127.0.0.1:0")
	testenv.Must(t, err)
	defer first.Close()
	_, err = httpapi.Listen(first.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "another process") || strings.Contains(err.Error(), "\n") {
		t.Errorf("err = %v, want one line that names the cause", err)
	}
}

func TestParseProxies(t *testing.T) {
	proxies, err := httpapi.ParseProxies([]string{"10.0.0.7", "192.168.0.0/16", "::1"})
	if err != nil || len(proxies) != 3 || proxies[0].Bits() != 32 || proxies[2].Bits() != 128 {
		t.Errorf("ParseProxies = %v, %v", proxies, err)
	}
	if _, err := httpapi.ParseProxies([]string{"proxy.local"}); err == nil || !strings.Contains(err.Error(), `"proxy.local"`) {
		t.Errorf("err = %v, want one that names the value", err)
	}
}

// Requests running when the context ends are answered within Drain, and
// cut off after it.
func TestServerDrains(t *testing.T) {
	for _, test := range []struct {
		name     string
		drain    time.Duration
		http2    bool
		answered bool
	}{
		{"within", 30 * time.Second, false, true}, {"beyond", time.Nanosecond, false, false},
		{"within, HTTP/2", 30 * time.Second, true, true}, {"beyond, HTTP/2", time.Nanosecond, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			begun, goOn := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(begun)
				<-goOn
				_, _ = io.WriteString(w, "done")
			})
			listener, err := httpapi.Listen("127.0.0.1:0")
			testenv.Must(t, err)
			lender := httptest.NewTLSServer(nil)
			defer lender.Close()
			server := httpapi.Server{
				Handler: handler, Clock: time.Now, Logger: slog.New(slog.DiscardHandler), Drain: test.drain,
				TLS: &tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12},
			}
			ctx, stop := context.WithCancel(t.Context())
			ended, answered := make(chan error, 1), make(chan bool, 1)
			client := lender.Client()
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = test.http2
			go func() { ended <- server.Serve(ctx, listener) }()
			go func() {
				response, err := client.Get("https://" + listener.Addr().String())
				if err == nil {
					response.Body.Close()
				}
				answered <- err == nil && (response.ProtoMajor == 2) == test.http2
			}()
			<-begun
			stop()
			if !test.answered {
				if err := <-ended; err == nil {
					t.Error("Serve ends in order though a request is cut off")
				}
			}
			close(goOn)
			if got := <-answered; got != test.answered {
				t.Errorf("answered: %t, want %t", got, test.answered)
			}
			if test.answered {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Only trusted proxies decide a request's origin; no header of a
// client changes its address.
func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                       {"203.0.113.9:1", nil, "203.0.113.9"},
		"a client that pretends":         {"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		"behind a proxy":                 {"10.0.0.7:1", []string{"203.0.113.9"}, "203.0.113.9"},
		"behind two proxies":             {"10.0.0.7:1", []string{"203.0.113.9, 10.0.0.8"}, "203.0.113.9"},
		"two headers":                    {"10.0.0.7:1", []string{"203.0.113.9", "10.0.0.8"}, "203.0.113.9"},
		"pretending behind a proxy":      {"10.0.0.7:1", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		"pretending to be a proxy":       {"10.0.0.7:1", []string{"10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		"nonsense before the client":     {"10.0.0.7:1", []string{"x, 203.0.113.9"}, "203.0.113.9"},
		"a proxy that says nothing":      {"10.0.0.7:1", nil, "10.0.0.7"},
		"a proxy that says nonsense":     {"10.0.0.7:1", []string{"unknown"}, "10.0.0.7"},
		"IPv4 in IPv6":                   {"[::ffff:10.0.0.7]:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		"IPv6 behind a proxy by a local": {"[::1]:1", []string{"2001:db8::5"}, "2001:db8::5"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.forwarded
		if got := httpapi.ClientAddress(r, trusted); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestClientNetwork(t *testing.T) {
	for client, want := range map[string]string{"203.0.113.9": "203.0.113.9/32", "2001:db8:1:2:3::9": "2001:db8:1:2::/64"} {
		if got := httpapi.ClientNetwork(netip.MustParseAddr(client)); got.String() != want {
			t.Errorf("%s: got %s, want %s", client, got, want)
		}
	}
	if got := httpapi.ClientNetwork(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: got %s", got)
	}
}

// watched starts a server that reports requests in plaintext.
func watched(t *testing.T, proxies ...netip.Prefix) (address string, client *http.Client, seen chan httpapi.PlaintextRequest) {
	t.Helper()
	lender := httptest.NewTLSServer(nil)
	t.Cleanup(lender.Close)
	listener, err := httpapi.Listen("127.0.0.1:0")
	testenv.Must(t, err)
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
			testenv.Must(t, err)
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
		testenv.Must(t, err)
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
