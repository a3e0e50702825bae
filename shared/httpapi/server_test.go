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
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// serve starts a Server around handler; the client trusts its certificate.
func serve(t *testing.T, handler http.Handler, proxies ...netip.Prefix) (address string, client *http.Client) {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // lends its certificate
	t.Cleanup(lender.Close)
	listener, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, line+" HTTP/1.1\r\nHost: weir\r\n"+key+"Content-Length: 2\r\n\r\n{}")
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		var problem struct {
			Code, Message, Detail string
			RequestID             string `json:"request_id"`
		}
		if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s with X-Forwarded-Proto %q: %d, want %d", c.scheme, c.protos, response.StatusCode, c.status)
		}
	}
}

// A port in use is an error of one clear line.
func TestListenPortInUse(t *testing.T) {
	first, err := httpapi.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
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
