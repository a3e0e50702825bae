package service

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// NewRouter returns a router with only the health routes.
func (b *Base) NewRouter(ready func() error, behind func() []httpapi.Backlog) *chi.Mux {
	router := httpapi.NewRouter(httpapi.Options{
		Logger: b.Logger, Clock: b.Clock, Proxies: b.Proxies, Observe: httpapi.NewMetrics(b.Metrics).Observe, Cursors: b.Cursors, Tracer: b.Tracer,
	})
	httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return behind(), ready() })
	return router
}

// NewGuard returns a guard with the settings' limits.
func (b *Base) NewGuard(config identity.GuardConfig) *identity.Guard {
	config.Limits, config.Proxies, config.Clock, config.Metrics = b.config.Limits, b.Proxies, b.Clock, b.Metrics
	return identity.NewGuard(config)
}

// Listen opens Endpoint, which listens at the settings' addresses.
// Requests over plain HTTP are passed to see.
func (b *Base) Listen(handler http.Handler, see func(httpapi.PlaintextRequest)) (err error) {
	if b.Endpoint, err = b.config.Open(handler, b.Logger, b.Clock, b.Metrics); err == nil {
		b.Endpoint.OnPlaintext(see)
	}
	return err
}
