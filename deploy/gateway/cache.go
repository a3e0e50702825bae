package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// How often the modules are asked for their parts of the OpenAPI
// document, at any rate of requests.
const (
	openAPIFresh   = 5 * time.Minute
	openAPIRetry   = time.Second // after a failure
	openAPITimeout = 5 * time.Second
)

// An openAPI caches the joined document. An old one is joined again,
// once for all callers; while that fails, the old one is served.
type openAPI struct {
	join   func(ctx context.Context) ([]byte, error)
	clock  func() time.Time
	logger *slog.Logger

	loading sync.Mutex // held while the modules are asked

	mu       sync.Mutex
	document http.Handler // nil before the first join
	next     time.Time    // when to ask again
}

func (o *openAPI) serve(w http.ResponseWriter, r *http.Request) error {
	document, due := o.current()
	switch {
	case document == nil:
		document = o.first()
	case due && o.loading.TryLock():
		go func() {
			defer o.loading.Unlock()
			if _, due := o.current(); due { // still due
				o.load()
			}
		}()
	}
	if document == nil {
		return httpapi.Unavailable("The description of the API can't be put together for the moment.", openAPIRetry)
	}
	document.ServeHTTP(w, r)
	return nil
}

// current returns the cached document, and whether a new one is due.
func (o *openAPI) current() (document http.Handler, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.document, !o.clock().Before(o.next)
}

// first waits for the first document; nil if it can't be joined.
func (o *openAPI) first() http.Handler {
	o.loading.Lock()
	defer o.loading.Unlock()
	document, due := o.current()
	if document == nil && due {
		o.load()
		document, _ = o.current()
	}
	return document
}

// load joins the document, independent of its caller, who may leave.
func (o *openAPI) load() {
	ctx, cancel := context.WithTimeout(context.Background(), openAPITimeout)
	defer cancel()
	text, err := o.join(ctx)
	if err != nil {
		o.logger.Warn("cannot join the OpenAPI document", slog.String("error", err.Error()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.next = o.clock().Add(openAPIRetry)
		return
	}
	o.document, o.next = httpapi.Document(text), o.clock().Add(openAPIFresh)
}
