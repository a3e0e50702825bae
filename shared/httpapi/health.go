package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

// A Readiness is nil if a service can serve, else why not, and what it
// has yet to apply of logs: meanwhile it serves, and shows what it has.
type Readiness func(ctx context.Context) ([]Backlog, error)

// A Backlog is a part of a service that catches up with a log.
type Backlog struct {
	Part        string  `json:"part"`                   // in public words
	Done        float64 `json:"done"`                   // applied of all, 0 to 1
	SecondsLeft float64 `json:"seconds_left,omitempty"` // at the pace so far; 0: not known
}

const readyPath = "/readyz"

// Health adds /healthz (the process answers) and /readyz (it can serve;
// else 500 unavailable with the parts that are not ready). A service that
// catches up can serve, and /readyz says how far it is. Both are public,
// so the reason, such as an unreachable address, is only logged, and how
// much there is to apply is not said.
func Health(router chi.Router, ready Readiness) {
	router = router.With(publicHealth)
	var logged atomic.Pointer[string] // the last reason: probes ask again and again
	router.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	router.Get(readyPath, Handle(func(w http.ResponseWriter, r *http.Request) error {
		if stopping(r) {
			return Unavailable("This process is stopping", time.Second)
		}
		behind, err := ready(r.Context())
		if err != nil {
			reason := Redact(err.Error())
			if last := logged.Swap(&reason); last == nil || *last != reason {
				Logger(r.Context()).Info("not ready", slog.String("error", reason))
			}
			return Unavailable("Not ready yet"+partsOf(err), time.Second)
		}
		logged.Store(nil)
		WriteJSON(w, http.StatusOK, readyAnswer(behind))
		return nil
	}))
}

// A ReadyAnswer is the body of /readyz with 200.
type ReadyAnswer struct {
	Status string    `json:"status"`           // ready, or catching_up
	Behind []Backlog `json:"behind,omitempty"` // what catches up
}

func readyAnswer(behind []Backlog) ReadyAnswer {
	if len(behind) > 0 {
		return ReadyAnswer{"catching_up", behind}
	}
	return ReadyAnswer{Status: "ready"}
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

// Limits of a client network's requests without a credential. A browser
// caches the files of pages, but a whole office may open them at once.
const (
	documentsPerMinute = 600
	filesPerMinute     = 3000
)

// public limits what a router answers to anybody, by client network: a
// flood would take the processors from clients with a credential.
type public struct{ documents, files, health *AnonymousLimit }

func newPublic(options Options) public {
	limited := func(perMinute int) *AnonymousLimit {
		return NewAnonymousLimit(perMinute, options.Proxies, options.Clock)
	}
	return public{limited(documentsPerMinute), limited(filesPerMinute), limited(documentsPerMinute)}
}

// PublicDocument limits a document, such as a description of the API.
func PublicDocument(next http.Handler) http.Handler {
	return publicly(next, func(p *public, r *http.Request) error { return p.documents.Admit(r) })
}

// PublicFile limits what pages refer to.
func PublicFile(next http.Handler) http.Handler {
	return publicly(next, func(p *public, r *http.Request) error { return p.files.Admit(r) })
}

// publicHealth limits health requests, except internal probes: a
// refused one would restart the service.
func publicHealth(next http.Handler) http.Handler {
	return publicly(next, func(p *public, r *http.Request) error {
		if isInternal(ClientAddress(r, p.health.proxies)) {
			return nil
		}
		return p.health.Admit(r)
	})
}

// isInternal reports whether an address can't belong to the Internet.
func isInternal(client netip.Addr) bool {
	return !client.IsValid() || client.IsLoopback() || client.IsPrivate() || client.IsLinkLocalUnicast()
}

// publicly admits requests to next within their router's limits.
func publicly(next http.Handler, admit func(p *public, r *http.Request) error) http.Handler {
	return Handle(func(w http.ResponseWriter, r *http.Request) error {
		if router := providedTo(r); router != nil {
			if err := admit(&router.public, r); err != nil {
				return err
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
