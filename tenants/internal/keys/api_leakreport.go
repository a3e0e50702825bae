package keys

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/leak"
)

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
