package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi/connections"
	"github.com/weirlog/weir/shared/testenv"
)

// from dials from another address: all of 127.0.0.0/8 is this machine.
func from(t *testing.T, local, address string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}, Timeout: 10 * time.Second}
	conn, err := dialer.Dial("tcp", address)
	testenv.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a request over a new connection, or over conn, and returns it.
func ask(t *testing.T, conn net.Conn, trust *tls.Config) (*tls.Conn, *http.Response) {
	t.Helper()
	secured, ok := conn.(*tls.Conn)
	if !ok {
		secured = tls.Client(conn, trust)
	}
	fmt.Fprint(secured, "GET / HTTP/1.1\r\nHost: weir\r\n\r\n")
	return secured, answer(t, bufio.NewReader(secured))
}

// isClosed reports whether the server closes an idle connection.
func isClosed(conn net.Conn, within time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := conn.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })

// Hundreds of sockets that send nothing, or stop in their handshake,
// block no other client: all but a few are closed.
func TestSilentSocketsAreClosed(t *testing.T) {
	for name, says := range map[string]string{"nothing": "", "the first byte of a handshake": "\x16", "half a request": "GET / HT"} {
		t.Run(name, func(t *testing.T) {
			address, trust := start(t, &Server{Handler: ok, Limits: connections.Limits{Total: 50, PerNetwork: 40}})
			var silent []net.Conn
			for range 200 {
				conn := from(t, "127.0.0.2", address)
				_, _ = io.WriteString(conn, says)
				silent = append(silent, conn)
			}
			if _, response := ask(t, from(t, "127.0.0.1", address), trust); response.StatusCode != http.StatusOK {
				t.Errorf("another network is answered with %d", response.StatusCode)
			}
			for i, conn := range silent[:180] {
				if !isClosed(conn, 30*time.Second) {
					t.Fatalf("socket %d of 200 is still open", i)
				}
			}
		})
	}
}

// Idle connections of one network, all used before, make room for
// another network, oldest first.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	server := &Server{Handler: ok, Limits: connections.Limits{Total: 20, PerNetwork: 20}}
	address, trust := start(t, server)
	var idle []*tls.Conn
	for n := range 20 {
		conn, _ := ask(t, from(t, "127.0.0.2", address), trust)
		idle = append(idle, conn)
		for server.connections.Count(connections.Idle) <= n {
			time.Sleep(time.Millisecond) // the answer arrives before the server has noted the request's end
		}
	}
	ask(t, from(t, "127.0.0.1", address), trust)
	if !isClosed(idle[0], 30*time.Second) {
		t.Error("the oldest idle connection is still open")
	}
	if _, response := ask(t, idle[19], trust); response.StatusCode != http.StatusOK {
		t.Errorf("the newest idle connection is answered with %d", response.StatusCode)
	}
}

// A connection within a request is Active and one after it Idle, over
// HTTP/1 and HTTP/2.
func TestStatesOfConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		asked, release := make(chan struct{}), make(chan struct{})
		server := &Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			asked <- struct{}{}
			<-release
		})}
		address, trust := start(t, server)
		transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: http2}
		go func() {
			<-asked
			if n := server.connections.Count(connections.Active); n != 1 {
				t.Errorf("HTTP/2 %t: %d are active in a request", http2, n)
			}
			close(release)
		}()
		response, err := (&http.Client{Transport: transport}).Get("https://" + address + "/")
		testenv.Must(t, err)
		response.Body.Close()
		for server.connections.Count(connections.Idle) != 1 {
			time.Sleep(time.Millisecond) // as above
		}
		if http2 != (response.ProtoMajor == 2) {
			t.Errorf("spoke %s", response.Proto)
		}
		transport.CloseIdleConnections()
	}
}

// Clients that stop in their handshake hold no place in the
// queue of handshakes.
func TestHandshakesAreQueued(t *testing.T) {
	server := &Server{Handler: ok}
	address, trust := start(t, server)
	for i := range 4 * runtime.GOMAXPROCS(0) { // twice as many as there are places
		conn := from(t, fmt.Sprintf("127.0.1.%d", i+1), address)
		go func() { _ = tls.Client(deaf{conn}, trust).Handshake() }()
	}
	for range 5 {
		ask(t, from(t, "127.0.0.1", address), trust)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) { // an answer arrives before its place is free
		held, queued := server.handshakes.Held(), server.handshakes.Queued()
		if held == 0 && queued == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d hold a place and %d wait for one, while nobody is served", held, queued)
		}
	}
}

// deaf never receives.
type deaf struct{ net.Conn }

func (deaf) Read([]byte) (int, error) { select {} }

// A place that a network's clients keep blocks only that network; a
// connection that waits too long or behind too many is closed.
func TestHandshakesQueueByNetwork(t *testing.T) {
	server := &Server{Handler: ok}
	testenv.Must(t, server.limit())
	server.handshakes = fairshare.NewLimiter(fairshare.Limits{Capacity: 2, PerKey: 1, Leases: 2})
	admit := func(local string) *connections.Conn {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close() })
		return server.connections.Admit(addressed{far, local})
	}
	testenv.Must(t, server.awaitTurn(t.Context(), admit("192.0.2.1")))
	waits := make(chan error, 1)
	go func() { waits <- server.awaitTurn(t.Context(), admit("192.0.2.1")) }()
	for server.handshakes.Queued() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := server.awaitTurn(t.Context(), admit("192.0.2.1")); !errors.Is(err, fairshare.ErrTooMany) {
		t.Errorf("behind too many: %v", err)
	}
	if err := server.awaitTurn(t.Context(), admit("192.0.2.2")); err != nil {
		t.Errorf("another network: %v", err)
	}
}

type addressed struct {
	net.Conn
	address string
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.address), Port: 1} }

// A paused connection delays the first answer that it reads.
type paused struct {
	net.Conn
	once           sync.Once
	received, goOn chan struct{}
}

func (p *paused) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.once.Do(func() {
		close(p.received)
		<-p.goOn
	})
	return n, err
}

// A client asked to restart its handshake (HelloRetryRequest), which it
// can cause, waits for another turn before anything is signed; it need
// not name the server.
func TestHandshakesAreQueuedAfterARetry(t *testing.T) {
	server := &Server{Handler: ok, TLS: &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}}}
	address, trust := start(t, server)
	trust.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP384} // it sends only a key of the first
	trust.ServerName, trust.InsecureSkipVerify = "", true
	conn := &paused{Conn: from(t, "127.0.0.1", address), received: make(chan struct{}), goOn: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- tls.Client(conn, trust).Handshake() }()
	<-conn.received
	var others []func()
	for i := range 2 * runtime.GOMAXPROCS(0) {
		lease, err := server.handshakes.Acquire(t.Context(), fmt.Sprintf("other-%d", i), 1)
		testenv.Must(t, err)
		others = append(others, lease.Release)
	}
	close(conn.goOn)
	testenv.Eventually(t, func() error {
		if server.handshakes.Queued() == 1 {
			return nil
		}
		select {
		case err := <-done:
			t.Fatalf("the handshake ended without its turn: %v", err)
		default:
		}
		return errors.New("the handshake does not wait")
	})
	for _, release := range others {
		release()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A server without a certificate refuses handshakes, and keeps running.
func TestHandshakesWithoutACertificate(t *testing.T) {
	server := &Server{Handler: ok, TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
	testenv.Must(t, server.limit())
	client, served := net.Pipe()
	defer client.Close()
	go func() { _ = tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	if err := tls.Server(served, server.queueHandshakes(server.TLS)).Handshake(); err == nil {
		t.Error("a handshake succeeds without a certificate")
	}
}

// start runs server on a local address until the test ends; the
// configuration trusts its certificate.
func start(t testing.TB, server *Server) (address string, trust *tls.Config) {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // lends its certificate
	t.Cleanup(lender.Close)
	if server.TLS == nil {
		server.TLS = &tls.Config{}
	}
	server.TLS.Certificates, server.TLS.MinVersion = lender.TLS.Certificates, tls.VersionTLS12
	server.Logger, server.Clock = slog.New(slog.DiscardHandler), time.Now
	listener, err := Listen("127.0.0.1:0")
	testenv.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	trust = lender.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.NextProtos, trust.ServerName = nil, "example.com"
	return listener.Addr().String(), trust
}

// answer reads one answer, and its body.
func answer(t *testing.T, reader *bufio.Reader) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return response
}

// flaky fails once as with too many open files, then returns one connection.
type flaky struct {
	net.Listener
	calls int
	conn  net.Conn
}

var errDone = errors.New("done")

func (f *flaky) Accept() (net.Conn, error) {
	f.calls++
	switch f.calls {
	case 1:
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	case 2:
		return f.conn, nil
	}
	return nil, errDone
}

// A burst of sockets that exhausts the process's files is survived:
// only closing ends the listener.
func TestAcceptAllOutlastsAPassingFailure(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	taken := 0
	err := acceptAll(&flaky{conn: near}, func(net.Conn) { taken++ })
	if taken != 1 || !errors.Is(err, errDone) {
		t.Errorf("%d connections taken, ended by %v; want 1, ended by the listener", taken, err)
	}
}

// A connection gets keep-alives after its first byte: until then it
// costs no more than accepting it.
func TestKeepAliveAfterTheFirstByte(t *testing.T) {
	listener, err := Listen("127.0.0.1:0")
	testenv.Must(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	testenv.Must(t, err)
	defer client.Close()
	raw, err := listener.Accept()
	testenv.Must(t, err)
	conn := connections.New(connections.Config{
		Limits: connections.Limits{Total: 8, PerNetwork: 8}, Network: (&Server{}).network,
	}).Admit(raw)
	defer conn.Close()
	if keptAlive(t, raw) {
		t.Error("a silent connection is kept alive")
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if first, err := conn.Peek(); first != 'x' || err != nil || !keptAlive(t, raw) {
		t.Errorf("after %q, %v a vanished peer is not noticed", first, err)
	}
}

func keptAlive(t *testing.T, conn net.Conn) bool {
	t.Helper()
	control, err := conn.(*net.TCPConn).SyscallConn()
	testenv.Must(t, err)
	var on int
	var failed error
	err = control.Control(func(fd uintptr) {
		on, failed = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	})
	testenv.Must(t, errors.Join(err, failed))
	return on != 0
}

// A client gets its preferred type; without a preference, the
// first one offered.
func TestPreferred(t *testing.T) {
	for accept, want := range map[string]string{
		"": TypeJSON, "*/*": TypeJSON, "application/json": TypeJSON, "application/x-ndjson": TypeLines, "application/json;q=0.5, application/x-ndjson": TypeLines,
		"application/x-ndjson;q=0": TypeJSON, "application/json, application/x-ndjson;q=0.9": TypeJSON, "Application/X-NDJSON; charset=utf-8": TypeLines,
		"rubbish;;": TypeJSON, "text/csv": TypeCSV, "text/html, text/csv;q=0.1": TypeCSV, "text/csv;q=0.4, application/x-ndjson;q=0.5": TypeLines,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		if got := Preferred(r, TypeJSON, TypeLines, TypeCSV); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}
