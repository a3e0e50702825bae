package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/gateway/reference"
	"github.com/weirlog/weir/shared/testenv"
)

// The modules are asked once while the document is fresh, and no more
// often while they can't be reached; then the old one is served.
func TestOpenAPIIsCached(t *testing.T) {
	var asked atomic.Int32
	var now atomic.Int64
	fails := errors.New("dial tcp 10.0.0.7:8443")
	text := "{}"
	o := &openAPI{pages: reference.NewPages(), logger: slog.New(slog.DiscardHandler), clock: func() time.Time { return time.Unix(now.Load(), 0) }}
	o.join = func(context.Context) ([]byte, error) {
		asked.Add(1)
		return []byte(text), fails
	}
	get := func() (*httptest.ResponseRecorder, error) {
		w := httptest.NewRecorder()
		return w, o.serve(w, httptest.NewRequest(http.MethodGet, openAPIPath, nil))
	}
	after := func(d time.Duration) {
		o.loading.Lock() // until no load runs
		defer o.loading.Unlock()
		now.Add(int64(d / time.Second))
	}
	for range 3 {
		if _, err := get(); err == nil || asked.Load() != 1 {
			t.Fatalf("%v after %d questions, want a failure that is remembered", err, asked.Load())
		}
	}
	fails = nil
	after(openAPIRetry)
	for range 3 {
		if w, err := get(); err != nil || w.Body.String() != "{}" || w.Header().Get("ETag") == "" || asked.Load() != 2 {
			t.Fatalf("%v %s after %d questions", err, w.Body, asked.Load())
		}
	}
	fails = errors.New("gone")
	after(openAPIFresh)
	for range 3 {
		if w, err := get(); err != nil || w.Body.String() != "{}" {
			t.Fatalf("%v %s, want the old one", err, w.Body)
		}
	}
	after(0)
	fails, text = nil, `{"openapi": "3.1.0"}`
	after(openAPIRetry)
	_, _ = get()
	for w, err := get(); w.Body.String() != text; w, err = get() {
		testenv.Must(t, err)
		after(0)
	}
	if asked.Load() != 4 {
		t.Errorf("the modules were asked %d times, want 4", asked.Load())
	}
}
