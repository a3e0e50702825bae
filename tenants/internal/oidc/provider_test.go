package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

// A caller who leaves stops waiting for a provider that does not
// answer, and those right after a failure do not call it again.
func TestProviderThatIsAway(t *testing.T) {
	var times atomic.Int32
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		times.Add(1)
		close(asked)
		<-answer
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p, first := New(Config{Issuer: server.URL, Clock: func() time.Time { return noon }}), make(chan error, 1)
	start := func(ctx context.Context) error {
		_, err := p.Start(ctx, tenants.Secret{})
		return err
	}
	go func() { first <- start(context.WithoutCancel(t.Context())) }()
	<-asked
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := start(gone); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("who has left gets %v", err)
	}
	close(answer)
	if err := <-first; !errors.Is(err, ErrUnavailable) {
		t.Errorf("who asked gets %v", err)
	}
	if err := start(t.Context()); !errors.Is(err, ErrUnavailable) || times.Load() != 1 {
		t.Errorf("who comes then gets %v; asked %d times", err, times.Load())
	}
}
