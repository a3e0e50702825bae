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
}

// New returns a gateway. Every module needs a backend. Clients behind
// proxies are distinguished.
func New(backends map[Module]Backend, proxies []netip.Prefix, logger *slog.Logger, clock func() time.Time) (*Gateway, error) {
	for _, module := range Modules() {
		if backends[module].Handler == nil {
			return nil, fmt.Errorf("cannot make a gateway: module %q has no backend", module)
		}
	}
	g := &Gateway{backends: backends}
	g.openAPI = &openAPI{join: g.joinOpenAPI, clock: clock, logger: logger}
	router := httpapi.NewRouter(httpapi.Options{Logger: logger, Clock: clock, Proxies: proxies})
	httpapi.Health(router, func() error { return g.Ready(context.Background()) })
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

// Ready returns nil once every module is ready; else names the others,
// with the reasons. Clients see only the names.
func (g *Gateway) Ready(ctx context.Context) error {
	var errs []error
	for _, module := range Modules() {
		if err := g.backends[module].Ready(ctx); err != nil {
			errs = append(errs, httpapi.Part(string(module), err))
		}
	}
	return errors.Join(errs...)
}
