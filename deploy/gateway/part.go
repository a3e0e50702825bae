package gateway

import (
	"bytes"
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// Pages of one module in which others have a part each: ADR 43. These are the
// overview of a project, the page of an error group, and that of its occurrences.
var pagesWithParts = regexp.MustCompile(`^/console/(overview|errors/grp_[^/]+(/occurrences)?)$`)

// partPaths are the addresses of these parts, by their names on the page.
var partPaths = map[string]string{
	"logs": "/console/logs/overview", "errors": "/console/errors/overview", "usage": "/console/usage/overview", "entry": "/console/logs/entry",
}

// partsTimeout is how long a page waits for its parts.
const partsTimeout = 2 * time.Second

// place is where the page shows a part, which is asked for with the place's query or else
// the page's. It has the text for readers who don't get the part.
var place = regexp.MustCompile(`(?s)<div data-part="([a-z]+)"(?: data-query="([^"]*)")?>.*?</div>`)

// servePage answers with a module's page, filled with the parts of other
// modules as far as they answer in time. Each module decides what the reader may see.
func (g *Gateway) servePage(module Module, w http.ResponseWriter, r *http.Request) {
	page := newRecorder()
	g.backends[module].Handler.ServeHTTP(page, r)
	body := page.body.Bytes()
	if page.status == http.StatusOK {
		body = g.fill(r, body)
	}
	for name, values := range page.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length") // that of the page without its parts
	w.WriteHeader(page.status)
	_, _ = w.Write(body)
}

// fill puts parts into their places.
func (g *Gateway) fill(r *http.Request, page []byte) []byte {
	ctx, cancel := context.WithTimeout(r.Context(), partsTimeout)
	defer cancel()
	places := place.FindAllSubmatchIndex(page, len(partPaths))
	parts := make([][]byte, len(places))
	var asked sync.WaitGroup
	for i, at := range places {
		query := r.URL.RawQuery
		if at[4] >= 0 {
			query = html.UnescapeString(string(page[at[4]:at[5]]))
		}
		asked.Go(func() { parts[i] = g.part(ctx, r, string(page[at[2]:at[3]]), query) })
	}
	asked.Wait()
	var filled bytes.Buffer
	end := 0
	for i, at := range places {
		filled.Write(page[end:at[0]])
		if end = at[1]; parts[i] == nil {
			parts[i] = page[at[0]:end]
		}
		filled.Write(parts[i])
	}
	filled.Write(page[end:])
	return filled.Bytes()
}

// part asks the module of a part for it, as the reader; nil: there is none in time.
func (g *Gateway) part(ctx context.Context, r *http.Request, name, query string) []byte {
	if name == occurrencesPart {
		return g.occurrencesPart(r, query)
	}
	path, known := partPaths[name]
	if !known {
		return nil
	}
	answer := g.askAs(ctx, r, question{path: path, query: query})
	if answer == nil || answer.status != http.StatusOK {
		return nil
	}
	return answer.body.Bytes()
}

// A question is what a module is asked.
type question struct {
	path, query string
	body        []byte // JSON, which is posted; nil: GET
}

// askAs asks a module as the reader of r; nil: it has not answered before ctx ended.
func (g *Gateway) askAs(ctx context.Context, r *http.Request, asked question) *recorder {
	module, _ := Owner(asked.path)
	answers := make(chan *recorder, 1)
	go func() {
		defer close(answers)
		defer func() { // a proxy ends so once its time is over
			if cause := recover(); cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // it is the value itself
				httpapi.Logger(ctx).Error("cannot ask a module", slog.String("path", asked.path), slog.Any("panic", cause))
			}
		}()
		answer := newRecorder()
		g.backends[module].Handler.ServeHTTP(answer, asked.request(ctx, r))
		answers <- answer
	}()
	select {
	case answer := <-answers:
		return answer
	case <-ctx.Done():
		return nil
	}
}

// ofReader are the headers that say who reads, and from where.
var ofReader = []string{"Cookie", "X-Api-Key", "User-Agent", "X-Forwarded-For", "X-Forwarded-Proto", "Traceparent", "Tracestate"}

// request asks as the reader of r.
func (q question) request(ctx context.Context, r *http.Request) *http.Request {
	asked := r.Clone(ctx)
	asked.URL.Path, asked.URL.RawPath, asked.URL.RawQuery, asked.RequestURI = q.path, "", q.query, q.path+"?"+q.query
	asked.Method, asked.Body, asked.ContentLength, asked.TransferEncoding = http.MethodGet, http.NoBody, 0, nil
	asked.Header = http.Header{}
	for _, name := range ofReader {
		if values := r.Header[name]; values != nil {
			asked.Header[name] = values
		}
	}
	if q.body != nil {
		asked.Method, asked.Body, asked.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(q.body)), int64(len(q.body))
		asked.Header.Set("Content-Type", "application/json")
	}
	return asked
}
