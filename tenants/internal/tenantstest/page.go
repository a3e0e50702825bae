package tenantstest

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Want checks the status of a page, and that it contains a text.
func Want(t *testing.T, what string, got *httptest.ResponseRecorder, status int, says string) {
	t.Helper()
	if got.Code != status || !strings.Contains(got.Body.String(), says) {
		t.Errorf("%s: %d %s, want %d with %q", what, got.Code, got.Body, status, says)
	}
}
