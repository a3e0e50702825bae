package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/deploy/gateway/reference"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// A Gateway is the http.Handler of the whole API.
type Gateway struct {
	backends map[Module]Backend
	own      http.Handler // what no module owns: health, OpenAPI, the redirect to the console, 404
	openAPI  *openAPI
	needs    []func() error
	turns    *fairshare.Limiter // of searches for occurrences
}

// New returns a gateway. Every module needs a backend. Clients behind
// proxies are distinguished. It is ready only while what the modules need
// answers, too; such an error is an httpapi.Part.
func New(backends map[Module]Backend, proxies []netip.Prefix, logger *slog.Logger, clock func() time.Time, needs ...func() error) (*Gateway, error) {
	for _, module := range Modules() {
		if backends[module].Handler == nil {
			return nil, fmt.Errorf("cannot make a gateway: module %q has no backend", module)
		}
	}
	g := &Gateway{backends: backends, needs: needs, turns: fairshare.NewLimiter(turns)}
	g.openAPI = &openAPI{join: g.joinOpenAPI, pages: reference.NewPages(), clock: clock, logger: logger}
	router := httpapi.NewRouter(httpapi.Options{Logger: logger, Clock: clock, Proxies: proxies})
	httpapi.Health(router, g.Ready)
	router.With(httpapi.PublicDocument).Get(openAPIPath, httpapi.Handle(g.openAPI.serve))
	router.With(httpapi.PublicDocument).Get(openAPI30Path, httpapi.Handle(g.openAPI.serveOlder))
	router.With(httpapi.PublicDocument, g.openAPI.pages.Protect).Get(pagePath, g.openAPI.pages.Handle(g.openAPI.servePage))
	router.Get(occurrencesRoute, httpapi.Handle(g.serveOccurrences))
	router.With(httpapi.PublicDocument).Get("/", http.RedirectHandler("/console", http.StatusSeeOther).ServeHTTP)
	g.own = router
	return g, nil
}

// ServeHTTP passes the request to the module that owns its path.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	module, known := Owner(path)
	if !known {
		module, known = meant(path)
	}
	switch {
	case !known:
		g.own.ServeHTTP(w, withReader(r))
	case r.Method == http.MethodGet && pagesWithParts.MatchString(path):
		g.servePage(module, w, r)
	default:
		g.backends[module].Handler.ServeHTTP(w, r)
	}
}

// Own returns the handler of what no module owns.
func (g *Gateway) Own() http.Handler { return g.own }

// Ready returns nil while every module is ready, and what they need
// answers; else names the others, with the reasons. Clients see only the
// names. Modules that are ready may be behind.
func (g *Gateway) Ready(ctx context.Context) (behind []httpapi.Backlog, err error) {
	var errs []error
	for _, answers := range g.needs {
		errs = append(errs, answers())
	}
	for _, module := range Modules() {
		theirs, err := g.backends[module].Ready(ctx)
		errs = append(errs, httpapi.Part(string(module), err))
		for _, one := range theirs {
			one.Part = string(module) + ": " + one.Part
			behind = append(behind, one)
		}
	}
	return behind, errors.Join(errs...)
}

// A Backend is one module as the gateway sees it.
type Backend struct {
	Handler http.Handler      // serves the module's full paths, and its part of /v1/openapi.json
	Ready   httpapi.Readiness // nil once the module can serve
}

// Local is a module in this process.
func Local(handler http.Handler, ready func() error, behind func() []httpapi.Backlog) Backend {
	return Backend{Handler: handler, Ready: func(context.Context) ([]httpapi.Backlog, error) { return behind(), ready() }}
}

// ask sends a GET through a backend's handler and returns the answer's body.
func (b Backend) ask(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	request.RemoteAddr = "127.0.0.1:0"
	answer := newRecorder()
	b.Handler.ServeHTTP(answer, request)
	if answer.status != http.StatusOK {
		return nil, fmt.Errorf("GET %s is answered with %d", path, answer.status)
	}
	return answer.body.Bytes(), nil
}

// A recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

func (r *recorder) Header() http.Header            { return r.header }
func (r *recorder) WriteHeader(status int)         { r.status = status }
func (r *recorder) Write(text []byte) (int, error) { return r.body.Write(text) }

// NewUnreached returns the metric of requests that did not reach their
// module: no module can count them.
func NewUnreached(registerer prometheus.Registerer) *prometheus.CounterVec {
	unreached := promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_gateway_unreached_requests_total", Help: "Requests that were answered 500 because their module was not reached, or ended before it answered.",
	}, []string{"module"})
	for _, module := range Modules() {
		unreached.WithLabelValues(string(module)) // shown as 0, so that the first request is a step
	}
	return unreached
}

// openAPIPath is where each module serves its own part, and the gateway the
// whole; openAPI30Path where that is as generators without OpenAPI 3.1 read
// it, and pagePath where it is for people.
const (
	openAPIPath   = "/v1/openapi.json"
	openAPI30Path = "/v1/openapi-3.0.json"
	pagePath      = "/docs"
)

// joinOpenAPI joins all modules' parts in one document.
func (g *Gateway) joinOpenAPI(ctx context.Context) ([]byte, error) {
	whole := httpapi.OpenAPI{
		Version: "3.1.0", Info: map[string]string{"title": "Weir", "version": "1"}, Servers: []map[string]string{{"url": "/"}},
	}
	for _, module := range Modules() {
		text, err := g.backends[module].ask(ctx, openAPIPath)
		if err != nil {
			return nil, fmt.Errorf("cannot read the OpenAPI part of %s: %w", module, err)
		}
		if err := whole.Add(text); err != nil {
			return nil, fmt.Errorf("cannot join the OpenAPI part of %s: %w", module, err)
		}
	}
	tags := whole.Tags
	if err := whole.Add(OpenAPI()); err != nil {
		return nil, fmt.Errorf("cannot join the gateway's own part: %w", err)
	}
	whole.Tags = tags // its tag is one of grouping's
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return reference.WithExamples(text)
}
