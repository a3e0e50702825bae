package errorcodes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

const fixture = `package p

const CodeOdd = "odd"

func NewProblem(status int, code, detail string) error { return nil }

func Invalid(pointer, code, detail, fix string) error { return nil }

func both() {
	_ = httpapi.NewProblem(http.StatusTooManyRequests, CodeOdd, fmt.Sprintf("Wait %d s.", 3) )
	_ = Invalid("/a", "even", "It is " + "even.", fmt.Sprintf("Send %q.", "odd"))
	_ = other.Invalid("/a", "This is no code.", "", "")
}
`

// Codes are found with status, detail and fix, as constants or not.
func TestScan(t *testing.T) {
	root := t.TempDir()
	for _, module := range modules {
		testenv.Must(t, os.Mkdir(filepath.Join(root, module), 0o755))
	}
	testenv.Must(t, os.WriteFile(filepath.Join(root, "ledger", "p.go"), []byte(fixture), 0o600))
	found, err := Scan(root)
	want := []Answer{
		{Code: "even", Status: 400, Module: "ledger", Detail: "It is even.", Fix: "Send …."},
		{Code: "odd", Status: 429, Module: "ledger", Detail: "Wait … s."},
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %+v, %v", found, err)
	}
}

// All codes of the real source are found: each constant that is a code,
// and those that are only in calls.
func TestEveryCodeIsFound(t *testing.T) {
	answers, err := Scan("../..")
	testenv.Must(t, err)
	var codes, said, silent []string
	for _, a := range answers {
		codes = append(codes, a.Code)
		if a.Detail+a.Fix != "" {
			said = append(said, a.Code)
		} else {
			silent = append(silent, a.Code)
		}
	}
	for _, code := range codes {
		if composed[code] == "" && !slices.Contains(said, code) {
			t.Errorf("what is said with %s stands neither in the source nor in composed", code)
		}
	}
	for code := range composed {
		if !slices.Contains(silent, code) {
			t.Errorf("what is said with %s stands in the source, and in composed", code)
		}
	}
	for _, code := range []string{
		"missing_api_key", "api_key_revoked", "quota_exceeded", "rate_limited", "overloaded", "not_found", "internal", "unavailable", "https_required",
		"method_not_allowed", "forbidden", "conflict", "invalid_json", "empty_batch", "batch_too_large", "invalid_entries", "message_too_large",
		"metadata_too_large", "entry_too_large", "missing_field", "invalid_type", "duplicate_field", "invalid_timestamp", "invalid_level",
		"idempotency_key_reused", "unsupported_encoding", "unsupported_media_type", "limit_reached", "last_owner", "secret_shown_once", "invalid_token",
	} {
		if !slices.Contains(codes, code) {
			t.Errorf("%s is not found", code)
		}
	}
	for code := range composed {
		if !slices.Contains(codes, code) {
			t.Errorf("%s is in composed and nowhere else", code)
		}
	}
}
