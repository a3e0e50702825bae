package tenants_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

const leakedAt = "https://code.example/acme/shop/blob/main/.env"

func keyExposed() tenants.APIKeyExposed {
	return tenants.APIKeyExposed{APIKey: "key_1", Kind: tenants.ExposedLeaked, Where: leakedAt, Source: "content", At: noon}
}

// An exposure is recorded once, and the policy decides about the
// key. A proxy's report is recorded, and never ends anything.
func TestAPIKeyExposeDecisions(t *testing.T) {
	expose := func(exposure tenants.Exposure, leaked tenants.LeakedPolicy, plain tenants.PlainHTTPPolicy) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Expose(tenants.ExposeAPIKey{Exposure: exposure, Policy: tenants.SecurityPolicy{LeakedKeys: leaked, PlainHTTPKeys: plain}})
		}
	}
	leak := tenants.Exposure{Kind: tenants.ExposedLeaked, Where: leakedAt, Source: "content", At: noon}
	elsewhere := leak
	elsewhere.Where = "javascript:alert(1)"
	clear := tenants.Exposure{Kind: tenants.ExposedPlainHTTP, Address: "192.0.2.7", At: noon}
	word := tenants.Exposure{Kind: tenants.ExposedForwarded, At: noon}
	plaintext := tenants.APIKeyExposed{APIKey: "key_1", Kind: tenants.ExposedPlainHTTP, Address: "192.0.2.7", At: noon}
	byWord := tenants.APIKeyExposed{APIKey: "key_1", Kind: tenants.ExposedForwarded, At: noon}
	nowhere := tenants.APIKeyExposed{APIKey: "key_1", Kind: tenants.ExposedLeaked, Source: "content", At: noon}
	revokedFor := func(reason string) tenants.APIKeyRevoked {
		return tenants.APIKeyRevoked{APIKey: "key_1", Reason: reason + " (security policy)", At: noon}
	}
	curtailed := tenants.APIKeyCurtailed{APIKey: "key_1", ExpiresAt: noon.Add(24 * time.Hour), Reason: "found in public at " + leakedAt + " (security policy)", At: noon}
	endsSoon := keyIssued()
	endsSoon.ExpiresAt = &later
	expired := keyIssued()
	expired.ExpiresAt = &noon
	ofPages := keyIssued()
	ofPages.Origins = []string{"https://shop.example"}
	given := []tenants.Event{keyIssued()}
	decide(t, map[string]decision[tenants.APIKey]{
		"leaked, notify": {given: given, when: expose(leak, tenants.NotifyLeaked, tenants.RevokePlainHTTP), then: []tenants.Event{keyExposed()}},
		"leaked, rotate": {given: given, when: expose(leak, tenants.RotateLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{keyExposed(), curtailed}},
		"leaked, revoke": {given: given, when: expose(leak, tenants.RevokeLeaked, tenants.FlagPlainHTTP),
			then: []tenants.Event{keyExposed(), revokedFor("found in public at " + leakedAt)}},
		"leaked, revoke, of web pages":  {given: []tenants.Event{ofPages}, when: expose(leak, tenants.RevokeLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{keyExposed()}},
		"leaked, rotate, ends sooner":   {given: []tenants.Event{endsSoon}, when: expose(leak, tenants.RotateLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{keyExposed()}},
		"leaked again, notify":          {given: []tenants.Event{keyIssued(), keyExposed()}, when: expose(leak, tenants.NotifyLeaked, tenants.FlagPlainHTTP)},
		"leaked again, no second grace": {given: []tenants.Event{keyIssued(), keyExposed(), curtailed}, when: expose(leak, tenants.RotateLeaked, tenants.FlagPlainHTTP)},
		"leaked again, now revoke":      {given: []tenants.Event{keyIssued(), keyExposed()}, when: expose(leak, tenants.RevokeLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{revokedFor("found in public at " + leakedAt)}},
		"leaked on no page of the web":  {given: given, when: expose(elsewhere, tenants.NotifyLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{nowhere}},
		"in clear, flag":                {given: given, when: expose(clear, tenants.RevokeLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{plaintext}},
		"in clear, revoke":              {given: given, when: expose(clear, tenants.NotifyLeaked, tenants.RevokePlainHTTP), then: []tenants.Event{plaintext, revokedFor("arrived over plain HTTP")}},
		"in clear and leaked":           {given: []tenants.Event{keyIssued(), keyExposed()}, when: expose(clear, tenants.NotifyLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{plaintext}},
		"a proxy's word, revoke":        {given: given, when: expose(word, tenants.RevokeLeaked, tenants.RevokePlainHTTP), then: []tenants.Event{byWord}},
		"of what is revoked":            {given: []tenants.Event{keyIssued(), tenants.APIKeyRevoked{APIKey: "key_1", At: noon}}, when: expose(leak, tenants.RevokeLeaked, tenants.FlagPlainHTTP)},
		"of what has expired":           {given: []tenants.Event{expired}, when: expose(leak, tenants.RevokeLeaked, tenants.FlagPlainHTTP)},
		"of what is not":                {when: expose(leak, tenants.RevokeLeaked, tenants.FlagPlainHTTP), fails: tenants.ErrNotFound},
	})
}

// A key found on page after page does not fill
// the disk, and foreign texts are bounded.
func TestExposuresAreBounded(t *testing.T) {
	var key tenants.APIKey
	key.Apply(keyIssued())
	for i := range 100 {
		exposure := tenants.Exposure{Kind: tenants.ExposedLeaked, Where: "https://code.example/" + strings.Repeat("x", i), Source: strings.Repeat("s", 101), At: noon}
		events, err := key.Expose(tenants.ExposeAPIKey{Exposure: exposure, Policy: tenants.DefaultSecurityPolicy("org_1")})
		testenv.Must(t, err)
		for _, event := range events {
			key.Apply(event)
		}
	}
	if len(key.Exposures) != 20 || key.Exposures[0].Source != "" {
		t.Errorf("%d exposures are kept, the first from %q", len(key.Exposures), key.Exposures[0].Source)
	}
}

// A report may hold anything: what can't be shown or stored is left out.
func TestExposureWithControlCharacters(t *testing.T) {
	key := tenants.APIKey{}
	key.Apply(keyIssued())
	exposure := tenants.Exposure{Kind: tenants.ExposedLeaked, Where: "https://code.example/\x00", Source: "a\x00", At: noon}
	events, err := key.Expose(tenants.ExposeAPIKey{Exposure: exposure, Policy: tenants.DefaultSecurityPolicy("org_1")})
	want := tenants.APIKeyExposed{APIKey: "key_1", Kind: tenants.ExposedLeaked, At: noon}
	if err != nil || len(events) != 1 || events[0] != want {
		t.Errorf("events = %+v, %v; want %+v", events, err, want)
	}
}
