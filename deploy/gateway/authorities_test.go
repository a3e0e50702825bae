package gateway_test

import (
	"bytes"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/testenv"
)

// authorityOf writes a file that makes a server's certificate trusted.
func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return file
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	testenv.Must(t, os.WriteFile(file, text, 0o600))
}

// Replaced authorities are trusted from the next connection on; while
// their file is invalid the old ones are, which is logged once.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := authorityOf(t, server)
	right, err := os.ReadFile(file)
	testenv.Must(t, err)
	stranger, err := localca.Ensure(t.TempDir(), server.Certificate().NotBefore)
	testenv.Must(t, err)
	others, err := os.ReadFile(stranger.CA)
	testenv.Must(t, err)
	write(t, file, others)
	var log bytes.Buffer
	authorities, err := gateway.LoadAuthorities(file, slog.New(slog.NewTextHandler(&log, nil)))
	testenv.Must(t, err)
	transport := gateway.NewTransport(authorities, "127.0.0.1")
	transport.DisableKeepAlives = true
	for i, step := range []struct {
		file     string
		believed bool
	}{{string(others), false}, {string(right), true}, {"nonsense", true}, {"", true}, {string(others), false}} {
		write(t, file, []byte(step.file))
		request := httptest.NewRequest(http.MethodGet, server.URL, nil)
		answer, err := transport.RoundTrip(request)
		if err == nil {
			answer.Body.Close()
		}
		if (err == nil) != step.believed {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if n := strings.Count(log.String(), "WEIR_CA_FILE"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// A file without a certificate is refused at the start.
func TestAuthoritiesAreRefused(t *testing.T) {
	for _, file := range []string{os.DevNull, filepath.Join(t.TempDir(), "missing.pem")} {
		if _, err := gateway.LoadAuthorities(file, nil); err == nil || !strings.Contains(err.Error(), "WEIR_CA_FILE") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Every path of the API reaches the module that owns its noun,
// and no other path reaches any.
func TestOwner(t *testing.T) {
	owners := map[string]gateway.Module{
		"/v1/logs":                             gateway.Ingest,
		"/v1/logs/tail":                        gateway.Ingest,
		"/v1/logs/patterns":                    gateway.Ingest,
		"/v1/searches/srch_1/alert":            gateway.Ingest,
		"/v1/organizations":                    gateway.Tenants,
		"/v1/organizations/org_1":              gateway.Tenants,
		"/v1/organizations/org_1/members":      gateway.Tenants,
		"/v1/organizations/org_1/balance":      gateway.Ledger,
		"/v1/organizations/org_1/entries":      gateway.Ledger,
		"/v1/organizations/org_1/chain":        gateway.Ledger,
		"/v1/organizations/org_1/verification": gateway.Ledger,
		"/v1/organizations/org_1/grants/7":     gateway.Ledger,
		"/v1/organizations/balance":            gateway.Tenants,
		"/v1/projects":                         gateway.Tenants,
		"/v1/projects/prj_1":                   gateway.Tenants,
		"/v1/projects/prj_1/error-groups":      gateway.Grouping,
		"/v1/projects/prj_1/rejected-entries":  gateway.Ingest,
		"/v1/projects/prj_1/error-settings":    gateway.Grouping,
		"/v1/projects/prj_1/error-owners":      gateway.Grouping,
		"/v1/projects/prj_1/error-rules":       gateway.Grouping,
		"/v1/projects/prj_1/ingest-rules":      gateway.Ingest,
		"/v1/projects/ingest-rules":            gateway.Tenants,
		"/v1/projects/prj_1/error-alerts":      gateway.Grouping,
		"/v1/projects/prj_1/source-maps/smp_1": gateway.Grouping,
		"/v1/projects/error-groups":            gateway.Tenants,
		"/v1/error-groups/grp_1":               gateway.Grouping,
		"/v1/error-groups/grp_1/activity":      gateway.Grouping,
		"/v1/error-groups/grp_1/merge":         gateway.Grouping,
		"/v1/error-groups/grp_1/occurrences":   "",
		"/v1/api-keys/key_1/revoke":            gateway.Tenants,
		"/v1/service-tokens":                   gateway.Tenants,
		"/v1/leak-reports":                     gateway.Tenants,
		"/console":                             gateway.Tenants,
		"/console/":                            gateway.Tenants,
		"/console/sign-in":                     gateway.Tenants,
		"/console/settings/api-keys":           gateway.Tenants,
		"/console/assets/weir.css":             gateway.Tenants,
		"/console/logs":                        gateway.Ingest,
		"/console/logs/csv":                    gateway.Ingest,
		"/console/logs/ndjson":                 gateway.Ingest,
		"/console/errors/grp_1":                gateway.Grouping,
		"/console/usage":                       gateway.Ledger,
		"/consoles":                            "",
		"/v1":                                  "",
		"/v1/":                                 "",
		"/v1/nothing":                          "",
		"/v2/logs":                             "",
		"/logs":                                "",
		"/":                                    "",
	}
	for path, want := range owners {
		module, known := gateway.Owner(path)
		if module != want || known != (want != "") {
			t.Errorf("Owner(%q) = %q, %t, want %q", path, module, known, want)
		}
	}
}
