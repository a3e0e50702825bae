package tenants_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func passkeyRegistered(counter uint32) tenants.PasskeyRegistered {
	return tenants.PasskeyRegistered{
		Passkey: "pky_1", Organization: "org_1", Member: "mem_1", Name: "Laptop", At: noon,
		Credential: tenants.PublicCredential{
			ID: []byte("id"), PublicKey: []byte("key"), Counter: counter, Transports: []string{"internal"}, Model: []byte("0123456789abcdef"),
			BackupEligible: true,
		},
	}
}

// A passkey is registered once, and a member has only so many.
func TestPasskeyRegistration(t *testing.T) {
	register := func(name string, existing int) func(tenants.Passkey) ([]tenants.Event, error) {
		return func(p tenants.Passkey) ([]tenants.Event, error) {
			return p.Register(tenants.RegisterPasskey{
				ID: "pky_1", Member: tenants.Member{ID: "mem_1", Organization: "org_1"}, Name: name,
				Credential: passkeyRegistered(1).Credential, Existing: existing, At: noon,
			})
		}
	}
	remove := func(p tenants.Passkey) ([]tenants.Event, error) { return p.Remove(later) }
	registered, removed := passkeyRegistered(1), tenants.PasskeyRemoved{Passkey: "pky_1", At: later}
	decide(t, map[string]decision[tenants.Passkey]{
		"register":           {when: register(" Laptop ", 19), then: []tenants.Event{registered}},
		"register again":     {given: []tenants.Event{registered}, when: register("Laptop", 1), fails: tenants.ErrReused},
		"one too many":       {when: register("Laptop", tenants.MaxPasskeys), fails: tenants.ErrTooMany},
		"without a name":     {when: register(" ", 0), faults: []string{"name"}},
		"remove":             {given: []tenants.Event{registered}, when: remove, then: []tenants.Event{removed}},
		"remove again":       {given: []tenants.Event{registered, removed}, when: remove},
		"remove what is not": {when: remove, fails: tenants.ErrNotFound},
	})
}

// A passkey signs its member in as long as there is no sign of a copy.
func TestPasskeyUse(t *testing.T) {
	use := func(counter uint32) func(tenants.Passkey) ([]tenants.Event, error) {
		return func(p tenants.Passkey) ([]tenants.Event, error) {
			return p.Use(tenants.UsePasskey{Counter: counter, BackedUp: true, At: later})
		}
	}
	used := func(counter uint32) tenants.PasskeyUsed {
		return tenants.PasskeyUsed{Passkey: "pky_1", Counter: counter, BackedUp: true, At: later}
	}
	suspected := func(counter uint32) tenants.PasskeySuspected {
		return tenants.PasskeySuspected{Passkey: "pky_1", Counter: counter, At: later}
	}
	counting, silent := []tenants.Event{passkeyRegistered(7)}, []tenants.Event{passkeyRegistered(0)}
	decide(t, map[string]decision[tenants.Passkey]{
		"the count grows":            {given: counting, when: use(8), then: []tenants.Event{used(8)}},
		"the count leaps":            {given: counting, when: use(1000), then: []tenants.Event{used(1000)}},
		"the count stays":            {given: counting, when: use(7), then: []tenants.Event{suspected(7)}},
		"the count falls":            {given: append(counting, used(9)), when: use(8), then: []tenants.Event{suspected(8)}},
		"the count is gone":          {given: counting, when: use(0), then: []tenants.Event{suspected(0)}},
		"one that never counts":      {given: append(silent, used(0)), when: use(0), then: []tenants.Event{used(0)}},
		"one that begins to count":   {given: silent, when: use(1), then: []tenants.Event{used(1)}},
		"one that may have a copy":   {given: append(counting, suspected(7)), when: use(8), fails: tenants.ErrNotFound},
		"one that was removed":       {given: append(counting, tenants.PasskeyRemoved{Passkey: "pky_1", At: noon.Add(time.Minute)}), when: use(8), fails: tenants.ErrNotFound},
		"one that is not registered": {when: use(8), fails: tenants.ErrNotFound},
	})
}
