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
// document, whatever clients ask for.
const (
	openAPIFresh   = 5 * time.Minute
	openAPIRetry   = time.Second // after a failure
	openAPITimeout = 5 * time.Second
)

// An openAPI keeps the joined document. It is joined again when it is old, once
// for all callers; while that fails, the old one is served.
type openAPI struct {
	join   func(ctx context.Context) ([]byte, error)
	clock  func() time.Time
	logger *slog.Logger

	loading sync.Mutex // held by who asks the modules

	mu       sync.Mutex
	document http.Handler // nil before it was joined once
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

// current is what is kept, and whether it is time to ask for it.
func (o *openAPI) current() (document http.Handler, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.document, !o.clock().Before(o.next)
}

// first waits for the first document; nil where it can't be joined.
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

// load joins the document, in its own time: who asked for it may go.
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
