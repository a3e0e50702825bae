package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/testenv"
)

// A server is one replica of a module. All of a module's have one port.
type server struct {
	*httptest.Server

	starting, frozen atomic.Bool
	thawed           chan struct{}
	begun, served    atomic.Int64 // requests, apart from those whether it is ready
	opened           atomic.Int64 // connections
	hangsUp          atomic.Bool  // after it has read a request
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	probe := r.URL.Path == "/readyz"
	if !probe {
		s.begun.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	}
	if s.frozen.Load() {
		<-s.thawed
	}
	switch {
	case probe && s.starting.Load():
		w.WriteHeader(http.StatusInternalServerError)
	case probe:
		_, _ = io.WriteString(w, "ready")
	case !probe && s.hangsUp.Load():
		panic(http.ErrAbortHandler)
	case !probe:
		s.served.Add(1)
	}
}

// serve starts replicas at 127.0.0.1, 127.0.0.2 and so on.
func serve(t *testing.T, number int) (servers []*server, replicas *gateway.Replicas, count *prometheus.GaugeVec) {
	t.Helper()
	var addresses []string
	port := "0"
	for i := range number {
		s := &server{thawed: make(chan struct{})}
		address := net.IPv4(127, 0, 0, byte(i+1)).String()
		listener, err := net.Listen("tcp", net.JoinHostPort(address, port)) //nolint:noctx // it doesn't wait
		testenv.Must(t, err)
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		s.Server = httptest.NewUnstartedServer(s)
		s.Listener = listener
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.opened.Add(1)
			}
		}
		s.Start()
		t.Cleanup(s.Close)
		servers, addresses = append(servers, s), append(addresses, address)
	}
	count = gateway.NewReplicaCount(prometheus.NewRegistry())
	target := &url.URL{Scheme: "http", Host: net.JoinHostPort("module", port)}
	lookup := func(context.Context, string) ([]string, error) { return addresses, nil }
	replicas = gateway.NewReplicas(target, &http.Transport{}, lookup, count, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- replicas.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testenv.Must(t, <-stopped)
	})
	return servers, replicas, count
}

// await waits until so many replicas are in a state.
func await(t *testing.T, count *prometheus.GaugeVec, state string, number float64) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if testutil.ToFloat64(count.WithLabelValues("module", state)) != number {
			return errors.New("not yet " + state)
		}
		return nil
	})
}

func send(t *testing.T, replicas *gateway.Replicas, method, body string) error {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://module/v1/logs", content)
	testenv.Must(t, err)
	answer, err := replicas.RoundTrip(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// Requests that wait for a frozen replica are ended: a GET is sent to
// another, a POST is the client's to repeat. Further ones go elsewhere.
func TestFrozenReplicaIsLeft(t *testing.T) {
	t.Parallel()
	servers, replicas, count := serve(t, 2)
	await(t, count, "ready", 2)
	frozen := servers[0]
	frozen.frozen.Store(true)
	t.Cleanup(func() { close(frozen.thawed) })
	posted, got := make(chan error, 8), make(chan error, 8)
	for range cap(posted) {
		go func() { posted <- send(t, replicas, http.MethodPost, "{}") }()
	}
	testenv.Eventually(t, func() error {
		if n := frozen.begun.Load(); n == 0 {
			return errors.New("the frozen replica has no request yet")
		}
		return nil
	})
	for range cap(got) {
		go func() { got <- send(t, replicas, http.MethodGet, "") }()
	}
	failed := int64(0)
	for range cap(posted) {
		testenv.Must(t, <-got)
		if err := <-posted; err != nil {
			failed++
		}
	}
	if failed == 0 || failed+servers[1].served.Load() != int64(cap(posted)+cap(got)) {
		t.Errorf("%d posts failed, and the other replica has served %d of %d requests", failed, servers[1].served.Load(), cap(posted)+cap(got))
	}
	await(t, count, "silent", 1)
	before := frozen.begun.Load()
	for range 10 {
		testenv.Must(t, send(t, replicas, http.MethodPost, "{}"))
	}
	if after := frozen.begun.Load(); after != before {
		t.Errorf("it gets %d more requests", after-before)
	}
}

// If no replica answers, requests wait: the machine may be busy.
func TestAllReplicasAreSilent(t *testing.T) {
	t.Parallel()
	servers, replicas, count := serve(t, 3)
	await(t, count, "ready", 3)
	for _, s := range servers {
		s.frozen.Store(true)
	}
	posted := make(chan error, 9)
	for range cap(posted) {
		go func() { posted <- send(t, replicas, http.MethodPost, "{}") }()
	}
	await(t, count, "silent", 3)
	for _, s := range servers {
		s.frozen.Store(false)
		close(s.thawed)
	}
	for range cap(posted) {
		testenv.Must(t, <-posted)
	}
}

// A replica that starts or stops gets no request while another is ready.
func TestReadyReplicasComeFirst(t *testing.T) {
	t.Parallel()
	servers, replicas, count := serve(t, 2)
	servers[1].starting.Store(true)
	await(t, count, "waiting", 1)
	if opened := servers[1].opened.Load(); opened > 1 {
		t.Errorf("probes opened %d connections", opened)
	}
	for range 10 {
		testenv.Must(t, send(t, replicas, http.MethodGet, ""))
	}
	if servers[1].begun.Load() > 0 {
		t.Error("one that is not ready gets requests")
	}
	servers[0].starting.Store(true)
	await(t, count, "waiting", 2)
	testenv.Must(t, send(t, replicas, http.MethodGet, ""))
}

// A request that was not sent goes to another replica. One that may have
// had an effect does not, and a GET that fails goes to one other.
func TestRequestsAreRepeatedWithoutHarm(t *testing.T) {
	t.Parallel()
	servers, replicas, count := serve(t, 3)
	await(t, count, "ready", 3)
	for _, s := range servers {
		s.hangsUp.Store(true)
	}
	for _, c := range []struct {
		method, body string
		replicas     int
	}{{http.MethodPost, "{}", 1}, {http.MethodDelete, "", 1}, {http.MethodGet, "", 2}} {
		for _, s := range servers {
			s.begun.Store(0)
		}
		if err := send(t, replicas, c.method, c.body); err == nil {
			t.Errorf("%s succeeds", c.method)
		}
		seen := 0
		for _, s := range servers {
			if s.begun.Load() > 0 {
				seen++
			}
		}
		if seen != c.replicas {
			t.Errorf("%d replicas have seen a %s, want %d", seen, c.method, c.replicas)
		}
	}
	servers[2].hangsUp.Store(false)
	servers[0].Close()
	servers[1].Close()
	for range 10 {
		testenv.Must(t, send(t, replicas, http.MethodPost, "{}"))
		testenv.Must(t, send(t, replicas, http.MethodDelete, ""))
	}
	if served := servers[2].served.Load(); served != 20 {
		t.Errorf("%d of 20 requests were served", served)
	}
}
