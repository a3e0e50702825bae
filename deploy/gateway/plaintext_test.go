package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// A plaintext request to the gateway is repeated to ingest with its key
// and sender: ingest treats it as plaintext, and trusts a proxy's
// report no further.
func TestPlaintextIsRepeated(t *testing.T) {
	asked := make(chan *http.Request, 2)
	ingest := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.WriteHeader(http.StatusForbidden)
	}))
	defer ingest.Close()
	target, err := url.Parse(ingest.URL)
	testenv.Must(t, err)
	plaintext := gateway.NewPlaintextReporter(target, ingest.Client().Transport, slog.New(slog.DiscardHandler))
	go func() { _ = plaintext.Run(t.Context()) }()
	seen := httpapi.PlaintextRequest{Key: "weir_1", Address: netip.MustParseAddr("198.51.100.7"), Client: "curl"}
	plaintext.See(seen)
	seen.Forwarded = true
	plaintext.See(seen)
	for _, want := range []map[string]string{
		{httpapi.HeaderPlaintext: "1", "X-Forwarded-Proto": ""}, {httpapi.HeaderPlaintext: "", "X-Forwarded-Proto": "http"},
	} {
		r := <-asked
		want["X-Api-Key"], want["X-Forwarded-For"], want["User-Agent"] = "weir_1", "198.51.100.7", "curl"
		for name, value := range want {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%s is %q, want %q", name, got, value)
			}
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/logs" {
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
	}
}

// If ingest does not trust the gateway, a flood of requests in
// plaintext causes no flood of warnings.
func TestPlaintextWarningsAreRare(t *testing.T) {
	asked := make(chan struct{})
	ingest := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		asked <- struct{}{}
	}))
	defer ingest.Close()
	target, err := url.Parse(ingest.URL)
	testenv.Must(t, err)
	var log bytes.Buffer
	plaintext := gateway.NewPlaintextReporter(target, ingest.Client().Transport, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = plaintext.Run(ctx) })
	for range 3 {
		plaintext.See(httpapi.PlaintextRequest{Key: "weir_1"})
		<-asked
	}
	stop()
	running.Wait()
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}
