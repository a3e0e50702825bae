package httpapi

import (
	"cmp"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5/middleware"

	"github.com/weirlog/weir/shared/tracing"
)

// Traced traces requests to a handler without a router, such as a
// forwarding one; nil for tracer: it does not.
func Traced(tracer *tracing.Tracer, proxies []netip.Prefix, next http.Handler) http.Handler {
	if tracer == nil {
		return next
	}
	return traced(tracer, proxies)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			tracing.Answered(r.Context(), known(r.Method), "", cmp.Or(wrapped.Status(), http.StatusOK))
		}()
		next.ServeHTTP(wrapped, r)
	}))
}

// traced begins the request's span; later handlers describe it.
func traced(tracer *tracing.Tracer, proxies []netip.Prefix) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if tracer == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin := tracer.Request
			if trusts(proxies, r.RemoteAddr) {
				begin = tracer.Proxied
			}
			ctx, span := begin(r.Context(), r.Header.Get("Traceparent"))
			defer span.End()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}
