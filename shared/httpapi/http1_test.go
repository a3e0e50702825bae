package httpapi

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/testenv"
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
			testenv.Must(t, err)
			defer plain.Close()
			secured, err := tls.Dial("tcp", address, trust)
			testenv.Must(t, err)
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
	testenv.Must(t, err)
	var problem struct {
		Status       int
		Code, Detail string
		RequestID    string `json:"request_id"`
	}
	testenv.Must(t, json.NewDecoder(response.Body).Decode(&problem))
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
		testenv.Must(t, err)
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
		testenv.Must(t, err)
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
	testenv.Must(t, err)
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

// refusing is a router that refuses every request without reading its
// body, as rate limits do, and counts them.
func refusing(t *testing.T, asked *atomic.Int32) http.Handler {
	t.Helper()
	router := NewRouter(Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Post("/", Handle(func(http.ResponseWriter, *http.Request) error {
		asked.Add(1)
		return NewProblem(http.StatusTooManyRequests, "rate_limited", "Too many.").RetryAfter(time.Second)
	}))
	router.Post("/written", func(w http.ResponseWriter, _ *http.Request) { // of unknown length at first
		asked.Add(1)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, strings.Repeat("x", 5000))
	})
	router.Post("/nothing", func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	return router
}

const announce = "POST %s HTTP/1.1\r\nHost: weir\r\n%s\r\n"

// patient is a server that waits for the rest of a body longer than
// any test runs.
func patient(t *testing.T, asked *atomic.Int32) *Server {
	return &Server{Handler: refusing(t, asked), restTimeout: time.Hour}
}

// A refusal is sent while the announced body is missing; if the body
// then comes, the connection takes the next request.
func TestAnswersDoNotWaitForTheBody(t *testing.T) {
	var asked atomic.Int32
	address, trust := start(t, patient(t, &asked))
	conn, err := tls.Dial("tcp", address, trust)
	testenv.Must(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for i := range int32(3) {
		fmt.Fprintf(conn, announce, "/", "Content-Length: 48000\r\n")
		if response := answer(t, reader); response.StatusCode != http.StatusTooManyRequests || response.Close {
			t.Errorf("request %d is answered with %d, close %t", i, response.StatusCode, response.Close)
		}
		if _, err := io.WriteString(conn, strings.Repeat("b", 48000)); err != nil {
			t.Fatal(err)
		}
		if asked.Load() != i+1 {
			t.Errorf("%d requests were seen after %d", asked.Load(), i+1)
		}
	}
	fmt.Fprintf(conn, announce, "/", "Transfer-Encoding: chunked\r\n")
	answer(t, reader)
	_, _ = io.WriteString(conn, "5\r\nchunk\r\n0\r\n\r\n")
	fmt.Fprintf(conn, announce, "/nothing", "Content-Length: 5\r\n")
	answer(t, reader)
	_, _ = io.WriteString(conn, "whole")
	fmt.Fprintf(conn, announce, "/", "Content-Length: 0\r\n")
	answer(t, reader)
}

// HTTP/2 does the same.
func TestAnswersDoNotWaitForTheBodyOverHTTP2(t *testing.T) {
	var asked atomic.Int32
	address, trust := start(t, patient(t, &asked))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	body, never := io.Pipe()
	defer never.Close()
	request, _ := http.NewRequest(http.MethodPost, "https://"+address+"/", body)
	request.ContentLength = 48000
	response, err := client.Do(request)
	testenv.Must(t, err)
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); response.ProtoMajor != 2 || response.StatusCode != 429 || err != nil || len(text) == 0 {
		t.Errorf("%s %d %q %v", response.Proto, response.StatusCode, text, err)
	}
}

// A client that withholds its announced body gets the answer and then
// an end; what it sends later is no request.
func TestUnreadBodiesEndTheConnection(t *testing.T) {
	for _, c := range []struct{ path, header, late string }{
		{"/", "Content-Length: 48000\r\n", "POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 0\r\n\r\n"},
		{"/", "Transfer-Encoding: chunked\r\n", "POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 0\r\n\r\n"},
		{"/", "Content-Length: 48000\r\nExpect: 100-continue\r\n", ""},
		{"/", "Content-Length: 100000000\r\n", strings.Repeat("b", 1<<20)},
		{"/written", "Content-Length: 48000\r\n", ""},
		{"/written", "Content-Length: 100000000\r\n", ""},
		{"/nothing", "Content-Length: 48000\r\n", ""},
	} {
		t.Run(strings.TrimSpace(c.path+" "+c.header), func(t *testing.T) {
			var asked atomic.Int32
			address, trust := start(t, &Server{Handler: refusing(t, &asked), restTimeout: time.Millisecond})
			raw, err := net.Dial("tcp", address)
			testenv.Must(t, err)
			conn := tls.Client(raw, trust)
			defer raw.Close()
			fmt.Fprintf(conn, announce, c.path, c.header)
			reader := bufio.NewReader(conn)
			answer(t, reader)
			_, _ = io.WriteString(conn, c.late)
			if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after the answer comes %v, want the end", err)
			}
			if asked.Load() != 1 {
				t.Errorf("%d requests were seen", asked.Load())
			}
		})
	}
}

// A client that sends a large body before it reads gets its answer: the
// connection is not reset.
func TestLargeUnreadBodiesDoNotLoseTheAnswer(t *testing.T) {
	var asked atomic.Int32
	address, trust := start(t, &Server{Handler: refusing(t, &asked)})
	conn, err := tls.Dial("tcp", address, trust)
	testenv.Must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, announce, "/", "Content-Length: 8000000\r\n")
	if _, err := io.WriteString(conn, strings.Repeat("b", 8_000_000)); errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("while it sends, the client is told %v", err)
	}
	if response := answer(t, bufio.NewReader(conn)); response.StatusCode != 429 || !response.Close {
		t.Errorf("answered with %d, close %t", response.StatusCode, response.Close)
	}
}

// A body that was read costs no extra time, and its connection stays open.
func TestReadBodiesKeepTheConnection(t *testing.T) {
	address, trust := start(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})})
	conn, err := tls.Dial("tcp", address, trust)
	testenv.Must(t, err)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for range 3 {
		fmt.Fprintf(conn, announce+"whole", "/", "Content-Length: 5\r\n")
		if response := answer(t, reader); response.Close {
			t.Error("the connection is closed")
		}
	}
}
