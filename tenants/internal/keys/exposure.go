package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Parts of the system that decide on exposed keys.
const (
	byIngest     = "ingest"
	byLeakReport = "leak-report"
)

// PolicyOf finds an organization's present security policy.
type PolicyOf func(ctx context.Context, in *query.Reader, organization pg.Organization) (tenants.SecurityPolicy, error)

// Exposures decides what follows when a key is exposed.
type Exposures struct {
	work     *unitofwork.Writer
	store    Store
	policyOf PolicyOf
}

// NewExposures returns exposures decided by a policy.
func NewExposures(work *unitofwork.Writer, policyOf PolicyOf) *Exposures {
	return &Exposures{work, NewStore(work.Views), policyOf}
}

// SeenInPlaintext decides in tx on a key received in plaintext.
// It ignores an unknown key, of another installation's log.
func (e *Exposures) SeenInPlaintext(ctx context.Context, tx pgx.Tx, organization, key string, exposure tenants.Exposure) error {
	u, err := e.work.Join(ctx, tx, organization, unitofwork.BySystem(byIngest))
	if err != nil {
		return err
	}
	if err := e.expose(ctx, u, organization, key, exposure); !errors.Is(err, tenants.ErrNotFound) {
		return err
	}
	return nil
}

// expose decides by the organization's present policy.
func (e *Exposures) expose(ctx context.Context, u *unitofwork.Unit, organization, key string, exposure tenants.Exposure) error {
	policy, err := e.policyOf(ctx, u.Reader(), pg.Organization(organization))
	if err != nil {
		return err
	}
	exposure.At = e.work.Now() // what follows happens now
	_, err = unitofwork.Change(ctx, u, stream(organization, key), func(k tenants.APIKey) ([]tenants.Event, error) {
		return k.Expose(tenants.ExposeAPIKey{Exposure: exposure, Policy: policy})
	})
	return err
}

// A Leak is where a secret was found.
type Leak struct {
	Hash   string // contract.CredentialKey of the found secret
	Where  string // address of the page
	Source string // kind of page
}

// Leaked decides on a secret found in public, and reports
// whether it is, or was, an API key. It does not wait
// until that is in force: a report may have thousands.
func (e *Exposures) Leaked(ctx context.Context, leak Leak) (isKey bool, err error) {
	found, err := e.store.ByHash(ctx, leak.Hash)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := e.leaked(ctx, found, leak); err != nil {
		return true, fmt.Errorf("cannot act on the leak of key %q: %w", found.ID, err)
	}
	return true, nil
}

func (e *Exposures) leaked(ctx context.Context, found Listed, leak Leak) error {
	u, err := e.work.Begin(ctx, found.Organization, unitofwork.BySystem(byLeakReport))
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	exposure := tenants.Exposure{Kind: tenants.ExposedLeaked, Where: leak.Where, Source: leak.Source}
	if err := e.expose(ctx, u, found.Organization, found.ID, exposure); err != nil {
		return err
	}
	return u.CommitNoWait(ctx)
}

// LeakReports receives reports of leaked keys,
// signed by one of keys; nil: not accepted.
type LeakReports struct {
	exposures *Exposures
	guard     *identity.Guard
	keys      *leak.Keys
}

// NewLeakReports returns reports on which exposures decides.
func NewLeakReports(exposures *Exposures, guard *identity.Guard, keys *leak.Keys) LeakReports {
	return LeakReports{exposures, guard, keys}
}

// Operation is the route for reports.
func (l LeakReports) Operation() openapi.Operation {
	return openapi.Operation{
		Route: "POST /v1/leak-reports", Handle: l.report, ID: "reportLeaks", Scopes: []string{openapi.Anybody},
		Summary: "Report secrets that were found in public, in the form of GitHub's secret scanning partner program. Off unless configured",
		Headers: leakHeaders{},
		Body:    openapi.Body{Type: []leakMatch{}},
		Answer:  openapi.Answer{Type: []leakLabel{}, Description: "Whether each is a key"},
		Problems: map[int]string{
			http.StatusBadRequest:          "A value can't be accepted: errors[] says which and what to do",
			http.StatusUnauthorized:        "Not signed by a key that is known",
			http.StatusNotFound:            "Leak reports are not taken here",
			http.StatusInternalServerError: "Not done: send the whole request again",
		},
	}
}

type leakHeaders struct {
	Key       string `header:"Github-Public-Key-Identifier" required:"true" description:"Which of GitHub's keys signs"`
	Signature string `header:"Github-Public-Key-Signature" required:"true" description:"Base64 of the ASN.1 signature of the body's bytes: ECDSA on P-256 with SHA-256"`
}

// maxLeakReport is the largest report, in bytes: some thousand matches.
const maxLeakReport = 1 << 20

// A leakMatch is one found secret, as GitHub reports it.
type leakMatch struct {
	_ struct{} `additionalProperties:"true"`

	Token  string `json:"token" required:"true"`
	Type   string `json:"type"`
	URL    string `json:"url"`
	Source string `json:"source"`
}

// A leakLabel is whether a found text is one
// of our secrets. It never holds the secret.
type leakLabel struct {
	TokenHash string `json:"token_hash" description:"SHA-256 of the token, hexadecimal"`
	TokenType string `json:"token_type"`
	Label     string `json:"label" enum:"true_positive,false_positive"` // "true_positive" or "false_positive"
}

// report receives a signed report of secrets found in
// public. Nobody else may learn whether something is a key.
func (l LeakReports) report(w http.ResponseWriter, r *http.Request) error {
	if err := l.guard.Ready(); err != nil {
		return err
	}
	if l.keys == nil {
		return httpapi.NewProblem(http.StatusNotFound, httpapi.CodeNotFound, "Leak reports are not taken here.")
	}
	matches, err := l.read(w, r)
	if err != nil {
		return err
	}
	labels, faults := l.processAll(r, matches)
	if len(faults) > 0 {
		httpapi.Logger(r.Context()).Error("cannot process all leaks of a report",
			slog.Int("missed", len(faults)), slog.Int("of", len(matches)), slog.String("error", faults[0].Error()))
		return httpapi.Unavailable("Not all of the report was taken. Send the whole report again.", time.Second)
	}
	httpapi.WriteJSON(w, http.StatusOK, labels)
	return nil
}

// processAll processes each match by itself: one that fails
// must not save the keys after it. faults are the errors.
func (l LeakReports) processAll(r *http.Request, matches []leakMatch) (labels []leakLabel, faults []error) {
	labels = make([]leakLabel, len(matches))
	for i, match := range matches {
		var err error
		if labels[i], err = l.process(r, match); err != nil {
			faults = append(faults, err)
		}
	}
	return labels, faults
}

// read parses a report after it has checked the signature.
func (l LeakReports) read(w http.ResponseWriter, r *http.Request) (matches []leakMatch, err error) {
	body, err := httpapi.ReadBody(w, r, maxLeakReport)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, httpapi.Invalid("", "body_too_large", "The report is larger than 1 MiB.", "Send it in parts.")
	}
	if err != nil {
		return nil, httpapi.Invalid("", httpapi.CodeInvalidRequest, "The report could not be read.", "Send it again.")
	}
	err = l.keys.Verify(r.Context(), r.Header.Get("Github-Public-Key-Identifier"), r.Header.Get("Github-Public-Key-Signature"), body)
	if errors.Is(err, leak.ErrUnavailable) {
		httpapi.Logger(r.Context()).Warn("cannot check a leak report", slog.String("error", err.Error()))
		return nil, httpapi.Unavailable("The signature can't be checked now. Send the report again.", time.Minute)
	}
	if err != nil {
		return nil, httpapi.NewProblem(http.StatusUnauthorized, "invalid_signature", "The report is not signed by a key that is known.").
			WithHeader("WWW-Authenticate", "Signature")
	}
	if err := json.Unmarshal(body, &matches); err != nil {
		return nil, httpapi.Invalid("", httpapi.CodeInvalidRequest, "The report is no JSON array of matches.",
			`Send [{"token", "type", "url", "source"}].`)
	}
	return matches, nil
}

// process processes one match. What can't be a key is not looked up.
func (l LeakReports) process(r *http.Request, match leakMatch) (leakLabel, error) {
	label := leakLabel{TokenHash: contract.CredentialKey(match.Token), TokenType: match.Type, Label: "false_positive"}
	if _, err := tenants.ParseSecret(tenants.APIKeyPrefix, match.Token); err != nil {
		return label, nil //nolint:nilerr // it is none of ours, which is the answer
	}
	isKey, err := l.exposures.Leaked(r.Context(), Leak{
		Hash: label.TokenHash, Where: httpapi.Redact(match.URL), Source: httpapi.Redact(match.Source),
	})
	if isKey {
		label.Label = "true_positive"
	}
	return label, err
}
