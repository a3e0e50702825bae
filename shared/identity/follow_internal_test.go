package identity

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// An unknown type of event, of a newer version, changes nothing and is
// no failure; later events are applied.
func TestUnknownTypesOfCredentialsPass(t *testing.T) {
	credentials, key := NewCredentials(time.Now), contract.CredentialKey("secret")
	consume := func(eventType, value string) {
		t.Helper()
		record := bus.Record{Key: []byte(key), Value: []byte(value), Headers: []bus.Header{{Key: contract.HeaderType, Value: []byte(eventType)}}}
		if err := credentials.Consume(record); err != nil {
			t.Fatalf("%s: %v", eventType, err)
		}
	}
	known := func() bool { _, err := credentials.Lookup("secret"); return err == nil }
	consume(contract.TypeCredentialChanged, `{"kind":"api_key","state":"active","version":1}`)
	consume("weir.credentials.v1.thrown", `{"kind":"api_key","state":"revoked","version":9}`)
	consume("weir.credentials.v1.sung", `no JSON`)
	if !known() {
		t.Error("an event of an unknown type was applied")
	}
	consume(contract.TypeCredentialChanged, `{"kind":"api_key","state":"revoked","version":2}`)
	if known() {
		t.Error("the revocation behind unknown types was not applied")
	}
}
