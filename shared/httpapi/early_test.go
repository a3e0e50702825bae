package httpapi

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for range 3 {
		fmt.Fprintf(conn, announce+"whole", "/", "Content-Length: 5\r\n")
		if response := answer(t, reader); response.Close {
			t.Error("the connection is closed")
		}
	}
}
