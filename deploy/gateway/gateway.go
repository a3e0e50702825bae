package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// A Gateway is the http.Handler of the whole API.
type Gateway struct {
	backends map[Module]Backend
	own      http.Handler // what no module owns: health, OpenAPI, the redirect to the console, 404
	openAPI  *openAPI
	needs    []func() error
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
	g := &Gateway{backends: backends, needs: needs}
	g.openAPI = &openAPI{join: g.joinOpenAPI, clock: clock, logger: logger}
	router := httpapi.NewRouter(httpapi.Options{Logger: logger, Clock: clock, Proxies: proxies})
	httpapi.Health(router, g.Ready)
	router.With(httpapi.PublicDocument).Get(openAPIPath, httpapi.Handle(g.openAPI.serve))
	router.With(httpapi.PublicDocument).Get("/", http.RedirectHandler("/console", http.StatusSeeOther).ServeHTTP)
	g.own = router
	return g, nil
}

// ServeHTTP passes the request to the module that owns its path.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if module, known := Owner(r.URL.EscapedPath()); known {
		g.backends[module].Handler.ServeHTTP(w, r)
		return
	}
	g.own.ServeHTTP(w, r)
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
