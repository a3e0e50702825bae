package app

import (
	"strings"
	"testing"
)

// An error about an address names the setting, and the right form.
func TestAddressesAreNamed(t *testing.T) {
	err := Config{IngestURL: "http://ingest:8443", LedgerURL: "https://ledger:8443", TenantsURL: "https://tenants:8443/v1"}.Validate()
	for _, want := range []string{`WEIR_INGEST_URL is "http://ingest:8443": use`, `WEIR_GROUPING_URL is "": use`, "WEIR_TENANTS_URL", "https://host:port"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "WEIR_LEDGER_URL") {
		t.Error(err)
	}
}
