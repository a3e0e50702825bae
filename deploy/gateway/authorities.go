package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/weirlog/weir/shared/httpapi"
)

// Authorities sign the certificates of trusted modules. Their file is
// read for each connection: replacing it needs no restart.
type Authorities struct {
	file   string // "": the system's
	logger *slog.Logger

	mu      sync.Mutex
	text    []byte         // of the file, when it was last valid
	pool    *x509.CertPool // from text; nil: the system's
	failing bool           // the last read failed
}

// LoadAuthorities reads a PEM file of certificates; "" means the system's.
func LoadAuthorities(file string, logger *slog.Logger) (*Authorities, error) {
	a := &Authorities{file: file, logger: logger}
	if err := a.refresh(); err != nil {
		return nil, err
	}
	return a, nil
}

// config returns the present TLS settings for a module of a name.
func (a *Authorities) config(name string) *tls.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.refresh()
	if err != nil && !a.failing { // once, until it is valid again
		a.logger.Error("the authorities have changed and can't be read: those before are used", slog.String("error", err.Error()))
	}
	a.failing = err != nil
	return &tls.Config{ServerName: name, RootCAs: a.pool, MinVersion: tls.VersionTLS12}
}

func (a *Authorities) refresh() error {
	if a.file == "" {
		return nil
	}
	text, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("cannot read the authorities (WEIR_CA_FILE): %w", err)
	}
	if a.pool != nil && bytes.Equal(text, a.text) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("the file %q (WEIR_CA_FILE) holds no certificate", a.file)
	}
	a.text, a.pool = text, pool
	return nil
}

// A Module is the name of a module that serves a part of the API.
type Module string

// The modules.
const (
	Ingest   Module = "ingest"
	Ledger   Module = "ledger"
	Grouping Module = "grouping"
	Tenants  Module = "tenants"
)

// Modules lists all modules in their order of display.
func Modules() []Module {
	return []Module{Ingest, Ledger, Grouping, Tenants}
}

// nouns maps the first segment after /v1 to its owner, unless a
// deeper segment decides.
var nouns = map[string]Module{
	"logs":           Ingest,
	"otlp":           Ingest,
	"loki":           Ingest,
	"elastic":        Ingest,
	"searches":       Ingest,
	"error-groups":   Grouping,
	"accounts":       Ledger,
	"organizations":  Tenants,
	"projects":       Tenants,
	"api-keys":       Tenants,
	"members":        Tenants,
	"sessions":       Tenants,
	"invitations":    Tenants,
	"audit-events":   Tenants,
	"service-tokens": Tenants,
	"leak-reports":   Tenants,
	"deletions":      Tenants,
}

// books are the parts of an organization that the ledger keeps.
var books = []string{
	"adjustments", "balance", "budgets", "thresholds", "chain", "entries", "statements", "grants", "test-clock", "subscription", "usage", "refusals", "forecast",
	"dry-run", "simulation", "verification",
}

// ofErrors are the parts of a project that grouping keeps.
var ofErrors = []string{"error-settings", "error-groups", "error-rules", "error-alerts", "error-owners", "source-maps"}

// ofEntries are the parts of a project that ingest keeps.
var ofEntries = []string{"ingest-rules", "rejected-entries"}

// pages maps the first segment after /console to its owner. All else
// belongs to tenants: /console itself, signing in and out and the
// settings; style sheets and icons are the same in every module.
var pages = map[string]Module{
	"logs":   Ingest,
	"errors": Grouping,
	"usage":  Ledger,
}

// Owner returns the module that serves path, given in its escaped form;
// false if none does, or not one alone.
func Owner(path string) (Module, bool) {
	if segments, ok := under("/v1", path); ok {
		return ownerOfNoun(segments)
	}
	if segments, ok := under("/console", path); ok {
		return ownerOfPage(segments), true
	}
	return "", false
}

// meant returns the module whose path an unowned one is a slip of: its answer says so.
func meant(path string) (Module, bool) {
	if segments, ok := under("/v1", path); ok && nouns[segments[0]] != "" {
		return "", false // one that is made of several modules
	}
	for _, candidate := range httpapi.Slips(path) {
		if module, known := Owner(candidate); known {
			return module, true
		}
	}
	return "", false
}

// under splits the rest of a path after prefix into its segments.
func under(prefix, path string) (segments []string, ok bool) {
	rest, ok := strings.CutPrefix(path, prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return nil, false
	}
	return strings.Split(strings.TrimPrefix(rest, "/"), "/"), true
}

func ownerOfNoun(segments []string) (Module, bool) {
	if len(segments) >= 3 {
		switch {
		case segments[0] == "error-groups" && segments[2] == "occurrences":
			return "", false // made of several modules
		case segments[0] == "organizations" && slices.Contains(books, segments[2]):
			return Ledger, true
		case segments[0] == "projects" && slices.Contains(ofErrors, segments[2]):
			return Grouping, true
		case segments[0] == "projects" && slices.Contains(ofEntries, segments[2]):
			return Ingest, true
		}
	}
	module, known := nouns[segments[0]]
	return module, known
}

func ownerOfPage(segments []string) Module {
	if module, known := pages[segments[0]]; known {
		return module
	}
	return Tenants
}
