package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/tracing"
)

// Options are a module's settings of its router.
type Options struct {
	Logger *slog.Logger
	Clock  func() time.Time

	// Proxies are trusted to name their clients; see ClientAddress.
	Proxies []netip.Prefix

	// Observe gets each answered request: its route's pattern ("" without
	// one), its method as sent, its status and duration. May be nil.
	Observe func(ctx context.Context, route, method string, status int, took time.Duration)

	// Tracer traces each request; nil: none.
	Tracer *tracing.Tracer

	// Cursors sign the cursors of the router's lists. The default signs
	// by a random key of this process.
	Cursors *Cursors
}

// NewRouter returns the base router: an id for each request, a log
// line, a 500 instead of a crash, security headers, and problem+json
// for unknown paths and methods, paced by client network.
func NewRouter(options Options) *chi.Mux {
	router, cursors := chi.NewRouter(), options.Cursors
	if cursors == nil {
		cursors = ownCursors()
	}
	given := provided{cursors, newPublic(options)}
	router.Use(given.provide, traced(options.Tracer, options.Proxies), identify(options.Logger), watch(options), recoverer, secure, wellFormed, middleware.GetHead)
	pace := paceOf(options)
	router.NotFound(Handle(func(_ http.ResponseWriter, r *http.Request) error {
		pace(r)
		detail := fmt.Sprintf("There is nothing at %q.", r.URL.EscapedPath())
		if meant := meant(router, r.URL.Path); meant != "" {
			detail += fmt.Sprintf(" Did you mean %q?", meant)
		}
		return NewProblem(http.StatusNotFound, CodeNotFound, detail)
	}))
	router.MethodNotAllowed(Handle(func(w http.ResponseWriter, r *http.Request) error {
		pace(r)
		methods := strings.Join(allowed(router, r.URL.Path), ", ")
		w.Header().Set("Allow", methods)
		return NewProblem(http.StatusMethodNotAllowed, CodeMethodNotAllowed,
			fmt.Sprintf("%s is not possible on %q; possible: %s.", r.Method, r.URL.EscapedPath(), methods))
	}))
	return router
}

// paceOf paces answers to requests for unknown paths: nothing else limits them.
func paceOf(options Options) func(r *http.Request) {
	refusals := NewRefusals()
	return func(r *http.Request) {
		refusals.Hold(r.Context(), options.Clock(), ClientNetwork(ClientAddress(r, options.Proxies)))
	}
}

func allowed(router *chi.Mux, path string) []string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if router.Match(chi.NewRouteContext(), method, path) || method == http.MethodHead && slices.Contains(methods, http.MethodGet) {
			methods = append(methods, method)
		}
	}
	return methods
}

// meant returns the path that an unknown one is a slip of; "" if there is none.
func meant(router *chi.Mux, path string) string {
	slips := Slips(path)
	for _, candidate := range slips {
		if len(allowed(router, candidate)) > 0 {
			return candidate
		}
	}
	return alone(router, slips[1])
}

// Slips returns the paths that one is a common slip of: of another case, with
// a slash at its end, without the version, in the singular.
func Slips(path string) []string {
	path = strings.TrimPrefix("/"+strings.ToLower(strings.Trim(path, "/")), "/api")
	versioned := "/v1/" + strings.TrimPrefix(strings.TrimPrefix(path, "/v1"), "/")
	return []string{path, versioned, versioned + "s"}
}

// alone returns the route below the same noun as a path if there is but one, such as the one for a protocol.
func alone(router chi.Routes, path string) string {
	noun, found := strings.Join(strings.SplitN(path, "/", 4)[:3], "/"), ""
	err := chi.Walk(router, func(_, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if (route == noun || strings.HasPrefix(route, noun+"/")) && route != found {
			if found != "" || strings.Contains(route, "{") {
				return errSeveral
			}
			found = route
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return found
}

var errSeveral = errors.New("there are several")

// wellFormed refuses an unreadable query. net/url would silently drop
// the broken part, and a dropped filter shows more than requested.
func wellFormed(next http.Handler) http.Handler {
	return Handle(func(w http.ResponseWriter, r *http.Request) error {
		if _, err := url.ParseQuery(r.URL.RawQuery); reads(r) && err != nil {
			return Invalid("?", CodeInvalidRequest, fmt.Sprintf("The query can't be read: %v.", err),
				"Separate parameters by &, and escape what is special in their values.")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

type contextKey int

const (
	requestIDKey contextKey = iota
	loggerKey
	routerKey
)

// provided is what a router gives its requests.
type provided struct {
	cursors *Cursors
	public  public
}

func (p *provided) provide(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routerKey, p)))
	})
}

// providedTo returns what r's router provides; nil outside one.
func providedTo(r *http.Request) *provided {
	p, _ := r.Context().Value(routerKey).(*provided)
	return p
}

// RequestID returns the id of ctx's request, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)
	return id
}

// Logger returns the logger of ctx's request, with its id. Outside a
// request it discards.
func Logger(ctx context.Context) *slog.Logger {
	if logger, ok := ctx.Value(loggerKey).(*slog.Logger); ok {
		return logger
	}
	return slog.New(slog.DiscardHandler)
}

// identify gives the request an id, a new one even behind a gateway:
// the last one wins in the answer.
func identify(logger *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := newRequestID()
			w.Header().Set("X-Request-Id", id)
			ctx := context.WithValue(r.Context(), requestIDKey, id)
			ctx = context.WithValue(ctx, loggerKey, tracing.Logger(ctx, logger.With(slog.String("request_id", id))))
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

func newRequestID() string {
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: see crypto/rand
	return "req_" + hex.EncodeToString(random[:])
}

// watch logs each request, at debug level unless Weir is at fault,
// and calls Observe.
func watch(options Options) func(http.Handler) http.Handler {
	observe := options.Observe
	if observe == nil {
		observe = func(context.Context, string, string, int, time.Duration) {}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			started := options.Clock()
			wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			defer func() { // also for an answer that is cut off
				status, took := observedStatus(r, wrapped.Status()), options.Clock().Sub(started)
				observe(r.Context(), route(r), r.Method, status, took)
				tracing.Answered(r.Context(), known(r.Method), route(r), status)
				Logger(r.Context()).Log(r.Context(), level(route(r), status), "request",
					slog.String("method", r.Method), slog.String("route", route(r)), slog.Int("status", status),
					slog.Int("bytes", wrapped.BytesWritten()), slog.Duration("took", took))
			}()
			next.ServeHTTP(wrapped, r)
		})
	}
}

// statusClientClosed is the status, which nobody read, of a request
// whose client has gone. nginx logs the same number.
const statusClientClosed = 499

// observedStatus is the status of a request's answer; 0: none was written.
func observedStatus(r *http.Request, written int) int {
	if written >= http.StatusInternalServerError && errors.Is(r.Context().Err(), context.Canceled) {
		return statusClientClosed
	}
	return cmp.Or(written, http.StatusOK)
}

// route returns the path's pattern, so that no id and no query gets
// into the log.
func route(r *http.Request) string {
	if routed := chi.RouteContext(r.Context()); routed != nil {
		return routed.RoutePattern()
	}
	return ""
}

func level(route string, status int) slog.Level {
	if status >= http.StatusInternalServerError && route != readyPath {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// recoverer answers a panic with a 500 and logs its stack;
// http.ErrAbortHandler passes.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch cause := recover(); cause {
			case nil:
			case http.ErrAbortHandler:
				panic(cause)
			default:
				writeError(w, r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// secure sets the headers of an API served over TLS only and never in a frame.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Strict-Transport-Security", "max-age=63072000; includeSubDomains")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// changeTime is how long a change may take: a client that waits for a
// database that hangs learns that it is unknown whether it was made.
const changeTime = 30 * time.Second

// LimitChanges ends the context of requests that change something after
// half a minute. Those that only read may be sent in pieces for longer.
func LimitChanges(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reads(r) {
			ctx, cancel := context.WithTimeout(r.Context(), changeTime)
			defer cancel()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

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

// Metrics measures requests. Create one for each router.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers the instruments, if registerer is not nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	return &Metrics{duration: promauto.With(registerer).NewHistogramVec(prometheus.HistogramOpts{
		Name:    "weir_http_request_duration_seconds",
		Help:    "How long requests took, to the last byte of the answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route", "method", "status"})}
}

// Observe measures one request by its route's pattern, such as
// /v1/projects/{project}, and the class of its status, such as 2xx.
// Client input is never a label: an unknown method is "other", an unknown
// path has its route. The trace of ctx, if sampled, is an exemplar.
func (m *Metrics) Observe(ctx context.Context, route, method string, status int, took time.Duration) {
	tracing.Observe(ctx, m.duration.WithLabelValues(route, known(method), strconv.Itoa(status/100)+"xx"), took.Seconds())
}

// known returns a known method, or "other": it is a client's text.
func known(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// secretForm matches every credential of Weir: a prefix and
// 48 hexadecimal digits.
var secretForm = regexp.MustCompile(`(weir[a-z]*_)[0-9a-fA-F]{48,}`)

// Redact removes credentials from text. They get into wrong places,
// such as a path, a query or a User-Agent, and must not be stored,
// shown or logged.
func Redact(text string) string {
	return secretForm.ReplaceAllString(text, "${1}[redacted]")
}
