package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// Health adds /healthz (the process answers) and /readyz (it can serve;
// else 500 unavailable with the parts that are not ready). Both are
// public, so the reason, such as an unreachable address, is only logged.
func Health(router chi.Router, ready func() error) {
	router = router.With(publicHealth)
	router.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	router.Get("/readyz", Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := ready(); err != nil {
			Logger(r.Context()).Info("not ready", slog.String("error", Redact(err.Error())))
			return Unavailable("Not ready yet"+partsOf(err), time.Second)
		}
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
		return nil
	}))
}

// A part is why one part of a service is not ready.
type part struct {
	name string
	err  error
}

// Part names the part of a service that is not ready because of err, in
// public words; nil if err is nil.
func Part(name string, err error) error {
	if err == nil {
		return nil
	}
	return &part{name, err}
}

func (p *part) Error() string { return fmt.Sprintf("%s: %v", p.name, p.err) }
func (p *part) Unwrap() error { return p.err }

// Starting returns the 500 of a service that can't judge requests yet.
// Like /readyz it shows only the parts of err.
func Starting(err error) *Problem {
	return Unavailable("The service is starting"+partsOf(err), time.Second)
}

// partsOf completes a sentence with the parts that are not ready, and
// no more of err.
func partsOf(err error) string {
	names := parts(err)
	if len(names) == 0 {
		return "."
	}
	return ": " + strings.Join(names, ", ") + "."
}

// parts returns the outermost parts that err names.
func parts(err error) (names []string) {
	switch err := err.(type) { //nolint:errorlint // it walks the tree itself
	case *part:
		return []string{err.name}
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			names = append(names, parts(one)...)
		}
	case interface{ Unwrap() error }:
		return parts(err.Unwrap())
	}
	return names
}
