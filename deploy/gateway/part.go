package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// The overview of a project is a page of tenants in which other modules have a
// part each: ADR 43.
const overviewPath = "/console/overview"

// overviewParts are the addresses of these parts, by their names on the page.
var overviewParts = map[string]string{
	"logs": "/console/logs/overview", "errors": "/console/errors/overview", "usage": "/console/usage/overview",
}

// partsTimeout is how long the overview waits for its parts.
const partsTimeout = 2 * time.Second

// place is where the page shows a part. It has the text for readers who don't get the part.
var place = regexp.MustCompile(`(?s)<div data-part="([a-z]+)">.*?</div>`)

// serveOverview answers with tenants' page, filled with the parts of other
// modules as far as they answer in time. Each module decides what the reader may see.
func (g *Gateway) serveOverview(w http.ResponseWriter, r *http.Request) {
	page := newRecorder()
	g.backends[Tenants].Handler.ServeHTTP(page, r)
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
	places := place.FindAllSubmatchIndex(page, len(overviewParts))
	parts := make([][]byte, len(places))
	var asked sync.WaitGroup
	for i, at := range places {
		asked.Go(func() { parts[i] = g.part(ctx, r, string(page[at[2]:at[3]])) })
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
func (g *Gateway) part(ctx context.Context, r *http.Request, name string) []byte {
	path, known := overviewParts[name]
	if !known {
		return nil
	}
	module, _ := Owner(path)
	answers := make(chan []byte, 1)
	go func() {
		defer close(answers)
		defer func() { // a proxy ends so once its time is over
			if cause := recover(); cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // it is the value itself
				httpapi.Logger(ctx).Error("cannot make a part of the overview", slog.String("part", name), slog.Any("panic", cause))
			}
		}()
		answer := newRecorder()
		g.backends[module].Handler.ServeHTTP(answer, partRequest(ctx, r, path))
		if answer.status == http.StatusOK {
			answers <- answer.body.Bytes()
		}
	}()
	select {
	case part := <-answers:
		return part
	case <-ctx.Done():
		return nil
	}
}

// ofReader are the headers that say who reads, and from where.
var ofReader = []string{"Cookie", "User-Agent", "X-Forwarded-For", "X-Forwarded-Proto", "Traceparent", "Tracestate"}

// partRequest asks for a part of the page that r asks for.
func partRequest(ctx context.Context, r *http.Request, path string) *http.Request {
	asked := r.Clone(ctx)
	asked.URL.Path, asked.URL.RawPath, asked.RequestURI = path, "", path+"?"+r.URL.RawQuery
	asked.Body, asked.ContentLength, asked.TransferEncoding = http.NoBody, 0, nil
	asked.Header = http.Header{}
	for _, name := range ofReader {
		if values := r.Header[name]; values != nil {
			asked.Header[name] = values
		}
	}
	return asked
}
