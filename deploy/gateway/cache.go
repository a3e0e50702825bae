package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/gateway/reference"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/ui"
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
	pages  *ui.Pages
	clock  func() time.Time
	logger *slog.Logger

	loading sync.Mutex // held while the modules are asked

	mu       sync.Mutex
	document *documents // nil before the first join
	next     time.Time  // when to ask again
}

// documents are the joined one, the same in OpenAPI 3.0, and as a page.
type documents struct{ present, older, page http.Handler }

// newDocuments makes them of the joined one. Programs get theirs even if
// there can be no page.
func newDocuments(text []byte, pages *ui.Pages, logger *slog.Logger) (*documents, error) {
	older, err := openapi.Version30(text)
	if err != nil {
		return nil, err
	}
	made := &documents{httpapi.Document(text), httpapi.Document(older), http.NotFoundHandler()}
	page, err := reference.Read(text)
	if err != nil {
		logger.Warn("cannot show the OpenAPI document", slog.String("error", err.Error()))
		return made, nil
	}
	shown := newRecorder()
	request := &http.Request{URL: &url.URL{Path: pagePath}}
	pages.Write(shown, request, http.StatusOK, "reference", ui.View{Title: "API reference", Bare: true, Wide: true, Data: page})
	made.page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), shown.header)
		_, _ = w.Write(shown.body.Bytes())
	})
	return made, nil
}

func (o *openAPI) serve(w http.ResponseWriter, r *http.Request) error {
	document, err := o.get()
	if err == nil {
		document.present.ServeHTTP(w, r)
	}
	return err
}

func (o *openAPI) serveOlder(w http.ResponseWriter, r *http.Request) error {
	document, err := o.get()
	if err == nil {
		document.older.ServeHTTP(w, r)
	}
	return err
}

// servePage shows the document to people.
func (o *openAPI) servePage(w http.ResponseWriter, r *http.Request) error {
	document, err := o.get()
	if err == nil {
		document.page.ServeHTTP(w, r)
	}
	return err
}

func (o *openAPI) get() (*documents, error) {
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
		return nil, httpapi.Unavailable("The description of the API can't be put together for the moment.", openAPIRetry)
	}
	return document, nil
}

// current returns the cached document, and whether a new one is due.
func (o *openAPI) current() (document *documents, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.document, !o.clock().Before(o.next)
}

// first waits for the first document; nil if it can't be joined.
func (o *openAPI) first() *documents {
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
	var document *documents
	text, err := o.join(ctx)
	if err == nil {
		document, err = newDocuments(text, o.pages, o.logger)
	}
	if err != nil {
		o.logger.Warn("cannot join the OpenAPI document", slog.String("error", err.Error()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.next = o.clock().Add(openAPIRetry)
		return
	}
	o.document, o.next = document, o.clock().Add(openAPIFresh)
}
