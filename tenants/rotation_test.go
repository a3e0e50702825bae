package tenants_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func keyRotated(end time.Time) tenants.APIKeyRotated {
	return tenants.APIKeyRotated{APIKey: "key_1", To: "key_2", ExpiresAt: end, At: noon}
}

// The old key works for the overlap and never beyond its own
// end; a key that has ended, or has a successor, is not rotated.
func TestAPIKeyRotateDecisions(t *testing.T) {
	rotate := func(overlap time.Duration) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Rotate(tenants.RotateAPIKey{To: "key_2", Overlap: overlap, At: noon})
		}
	}
	expiring, expired := keyIssued(), keyIssued()
	expiring.ExpiresAt, expired.ExpiresAt = &later, &noon
	revoked := tenants.APIKeyRevoked{APIKey: "key_1", At: noon}
	day := 24 * time.Hour
	decide(t, map[string]decision[tenants.APIKey]{
		"at once":                  {given: []tenants.Event{keyIssued()}, when: rotate(0), then: []tenants.Event{keyRotated(noon)}},
		"a day later":              {given: []tenants.Event{keyIssued()}, when: rotate(day), then: []tenants.Event{keyRotated(noon.Add(day))}},
		"seven days later":         {given: []tenants.Event{keyIssued()}, when: rotate(7 * day), then: []tenants.Event{keyRotated(noon.Add(7 * day))}},
		"not beyond its own end":   {given: []tenants.Event{expiring}, when: rotate(day), then: []tenants.Event{keyRotated(later)}},
		"before its own end":       {given: []tenants.Event{expiring}, when: rotate(time.Minute), then: []tenants.Event{keyRotated(noon.Add(time.Minute))}},
		"longer than seven days":   {given: []tenants.Event{keyIssued()}, when: rotate(7*day + time.Second), faults: []string{"overlap_seconds"}},
		"less than nothing":        {given: []tenants.Event{keyIssued()}, when: rotate(-1), faults: []string{"overlap_seconds"}},
		"what is revoked":          {given: []tenants.Event{keyIssued(), revoked}, when: rotate(day), fails: tenants.ErrKeyRevoked},
		"what has expired":         {given: []tenants.Event{expired}, when: rotate(day), fails: tenants.ErrKeyExpired},
		"what was rotated":         {given: []tenants.Event{keyIssued(), keyRotated(later)}, when: rotate(day), fails: tenants.ErrKeyRotated},
		"what was rotated at once": {given: []tenants.Event{keyIssued(), keyRotated(noon)}, when: rotate(day), fails: tenants.ErrKeyExpired},
		"what is not":              {when: rotate(day), fails: tenants.ErrNotFound},
	})
}

// The successor is for the same, with the
// original lifetime of its predecessor.
func TestSuccessor(t *testing.T) {
	issued := keyIssued()
	issued.ExpiresAt, issued.RatePerMinute, issued.Access = &later, 30, tenants.WriteAccess // an hour
	var key tenants.APIKey
	for _, event := range []tenants.Event{issued, tenants.APIKeyCurtailed{APIKey: "key_1", ExpiresAt: noon.Add(time.Minute), At: noon}} {
		key.Apply(event)
	}
	rotation := tenants.RotateAPIKey{To: "key_2", Digest: digest("cd34"), At: noon.Add(time.Second)}
	got := key.Successor(rotation)
	want := tenants.IssueAPIKey{
		ID: "key_2", Organization: "org_1", Project: "prj_1", Environment: tenants.Prod, Name: "Shop, live", Digest: digest("cd34"),
		At: rotation.At, ExpiresAt: later.Add(time.Second), RatePerMinute: 30, Replaces: "key_1", Access: tenants.WriteAccess,
	}
	if got != want {
		t.Errorf("successor:\n got %+v\nwant %+v", got, want)
	}
	// The same rotation again, a moment later: the key is there,
	// and can't be shown again.
	var successor tenants.APIKey
	events, err := successor.Issue(got)
	if err != nil {
		t.Fatal(err)
	}
	successor.Apply(events[0])
	rotation.At = rotation.At.Add(time.Minute)
	if _, err := successor.Issue(key.Successor(rotation)); !errors.Is(err, tenants.ErrShownOnce) {
		t.Errorf("the successor again: %v, want ErrShownOnce", err)
	}
	// A name that is refused today is no reason to keep a key in force.
	got.Name = "Shop\u202e"
	if _, err := (tenants.APIKey{}).Issue(got); err != nil {
		t.Errorf("the successor of a key whose name is older than the rule: %v", err)
	}
}
