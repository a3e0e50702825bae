package httpapi

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What net/http refuses by itself.
var unreadable = map[string]struct{ request, says string }{
	"no HTTP":               {"garbage\r\n\r\n", "can't be read"},
	"no host":               {"GET / HTTP/1.1\r\n\r\n", "missing required Host header"},
	"a header without name": {"GET / HTTP/1.1\r\nHost: weir\r\n: x\r\n\r\n", "can't be read"},
	"two lengths":           {"POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "can't be read"},
	"an expectation":        {"POST / HTTP/1.1\r\nHost: weir\r\nExpect: 200-ok\r\nContent-Length: 2\r\n\r\n{}", "Expect"},
	"a transfer encoding":   {"POST / HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: gzip\r\n\r\n{}", "Transfer-Encoding"},
	"another version":       {"POST / HTTP/3.0\r\nHost: weir\r\nContent-Length: 2\r\n\r\n{}", "version"},
	"headers of many bytes": {"GET / HTTP/1.1\r\nHost: weir\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n", "16384 bytes"},
	"more than is read":     {strings.Repeat("garbage\r\n\r\n", 1<<17), "can't be read"},
}

// Requests that net/http refuses before any handler get a problem with
// 400 and an orderly end, over TLS and in plain HTTP, on a new
// connection and after other requests.
func TestUnreadableRequestsGetProblems(t *testing.T) {
	for name, c := range unreadable {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			address, trust := start(t, &Server{Handler: ok, Metrics: registry})
			plain, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			secured, err := tls.Dial("tcp", address, trust)
			if err != nil {
				t.Fatal(err)
			}
			defer secured.Close()
			used, _ := ask(t, from(t, "127.0.0.1", address), trust)
			for _, conn := range []net.Conn{plain, secured, used} {
				go func() { _, _ = io.WriteString(conn, c.request) }() // it may be too long to be taken
				checkUnreadable(t, conn, c.says)
			}
			if n := count(t, registry, closings, "protocol_error"); n != 3 {
				t.Errorf("%d connections were closed for a protocol error", n)
			}
		})
	}
}

func checkUnreadable(t *testing.T, conn net.Conn, says string) {
	t.Helper()
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct {
		Status       int
		Code, Detail string
		RequestID    string `json:"request_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 400 || problem.Status != 400 || problem.Code != "invalid_request" || !strings.Contains(problem.Detail, says) {
		t.Errorf("%d %+v, want 400 that says %q", response.StatusCode, problem, says)
	}
	if kind := response.Header.Get("Content-Type"); kind != "application/problem+json" || !response.Close {
		t.Errorf("%q, close %t", kind, response.Close)
	}
	if problem.RequestID == "" || problem.RequestID != response.Header.Get("X-Request-Id") {
		t.Errorf("request id %q, header %q", problem.RequestID, response.Header.Get("X-Request-Id"))
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the answer comes %v, want the end", err)
	}
}

// An answer that contains what net/http's refusals look like, wherever
// its pieces begin, is left alone.
func TestAnswersLikeRefusalsAreLeftAlone(t *testing.T) {
	text := strings.Repeat("HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n", 1000)
	address, trust := start(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(text))) // no chunks: pieces are sent as they are
		for rest := text; rest != ""; {
			n := min(len(rest), 113)
			_, _ = io.WriteString(w, rest[:n])
			_ = http.NewResponseController(w).Flush()
			rest = rest[n:]
		}
	})})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	defer client.CloseIdleConnections()
	for range 2 {
		response, err := client.Get("https://" + address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 200 || string(body) != text || err != nil {
			t.Fatalf("%d, %d bytes, %v", response.StatusCode, len(body), err)
		}
	}
}

// HTTP/2 refuses an unknown expectation and too large headers alike.
func TestHTTP2RefusesAlike(t *testing.T) {
	address, trust := start(t, &Server{Handler: ok})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for name, value := range map[string]string{"Expect": "200-ok", "X": strings.Repeat("x", 2*maxHeaderBytes)} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address, nil)
		request.Header.Set(name, value)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if kind := response.Header.Get("Content-Type"); response.StatusCode != 400 || kind != "application/problem+json" || response.ProtoMajor != 2 {
			t.Errorf("%s: %s %d %s %s", name, response.Proto, response.StatusCode, kind, text)
		}
	}
}

// count returns a counter's value for a reason.
func count(t *testing.T, registry *prometheus.Registry, name, reason string) int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == reason {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	return 0
}

const (
	closings = "weir_http_connections_closed_total"
	delays   = "weir_http_connections_delayed_total"
)
