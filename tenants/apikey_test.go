package tenants_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

func keyIssued() tenants.APIKeyIssued {
	return tenants.APIKeyIssued{
		APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Prod, Name: "Shop, live",
		Digest: digest("ab12"), At: noon, Access: tenants.FullAccess,
	}
}

func issueKey() tenants.IssueAPIKey {
	return tenants.IssueAPIKey{
		ID: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Prod, Name: "Shop, live",
		Digest: digest("ab12"), At: noon,
	}
}

// A key is issued once; a repeated request gets no
// second key and no way to the first one's secret.
func TestAPIKeyIssueDecisions(t *testing.T) {
	issue := func(change func(*tenants.IssueAPIKey)) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			cmd := issueKey()
			change(&cmd)
			return k.Issue(cmd)
		}
	}
	same := func(*tenants.IssueAPIKey) {}
	expiring := keyIssued()
	expiring.ExpiresAt = &later
	narrow := keyIssued()
	narrow.Access = tenants.ProjectAccess
	decide(t, map[string]decision[tenants.APIKey]{
		"issue": {when: issue(same), then: []tenants.Event{keyIssued()}},
		"issue with an end": {
			when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = later }),
			then: []tenants.Event{expiring},
		},
		"issue again":                      {given: []tenants.Event{keyIssued()}, when: issue(same), fails: tenants.ErrShownOnce},
		"issue again, with another secret": {given: []tenants.Event{keyIssued()}, when: issue(func(c *tenants.IssueAPIKey) { c.Digest = digest("cd34") }), fails: tenants.ErrShownOnce},
		"issue again, for another project": {given: []tenants.Event{keyIssued()}, when: issue(func(c *tenants.IssueAPIKey) { c.Project = "prj_2" }), fails: tenants.ErrReused},
		"issue again, with another end":    {given: []tenants.Event{keyIssued()}, when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = later }), fails: tenants.ErrReused},
		"an end that can't be written":     {when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }), faults: []string{"expires_at"}},
		"issue one that reads less":        {when: issue(func(c *tenants.IssueAPIKey) { c.Access = tenants.ProjectAccess }), then: []tenants.Event{narrow}},
		"issue one that reads all":         {when: issue(func(c *tenants.IssueAPIKey) { c.Access = tenants.FullAccess }), then: []tenants.Event{keyIssued()}},
		"issue again, to read all":         {given: []tenants.Event{narrow}, when: issue(same), fails: tenants.ErrReused},
		"no such access":                   {when: issue(func(c *tenants.IssueAPIKey) { c.Access = "read" }), faults: []string{"access"}},
		"an end that is now":               {when: issue(func(c *tenants.IssueAPIKey) { c.ExpiresAt = noon }), faults: []string{"expires_at"}},
		"no such environment":              {when: issue(func(c *tenants.IssueAPIKey) { c.Environment = "production" }), faults: []string{"environment"}},
		"every fault at once": {
			when:   issue(func(c *tenants.IssueAPIKey) { *c = tenants.IssueAPIKey{At: noon} }),
			faults: []string{"project", "name", "environment"},
		},
	})
}

// A key is revoked once and forever; the first reason stays.
func TestAPIKeyRevokeDecisions(t *testing.T) {
	revoked := tenants.APIKeyRevoked{APIKey: "key_1", Reason: "leaked", At: later}
	revoke := func(reason string) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Revoke(tenants.Revoke{Reason: reason, At: later})
		}
	}
	decide(t, map[string]decision[tenants.APIKey]{
		"revoke":                  {given: []tenants.Event{keyIssued()}, when: revoke(" leaked "), then: []tenants.Event{revoked}},
		"revoke again":            {given: []tenants.Event{keyIssued(), revoked}, when: revoke("other")},
		"revoke without a reason": {given: []tenants.Event{keyIssued()}, when: revoke(""), then: []tenants.Event{tenants.APIKeyRevoked{APIKey: "key_1", At: later}}},
		"revoke what is not":      {when: revoke("leaked"), fails: tenants.ErrNotFound},
		"a control character":     {given: []tenants.Event{keyIssued()}, when: revoke("a\x1bb"), faults: []string{"reason"}},
	})
}

// A key works from its first instant up to, and not
// including, its end; a revocation ends it at any time.
func TestAPIKeyState(t *testing.T) {
	issued := keyIssued()
	issued.ExpiresAt = &later
	revoked := tenants.APIKeyRevoked{APIKey: "key_1", At: noon}
	for name, test := range map[string]struct {
		given []tenants.Event
		at    time.Time
		want  tenants.State
	}{
		"no end":                   {[]tenants.Event{keyIssued()}, later.AddDate(100, 0, 0), tenants.Active},
		"just before the end":      {[]tenants.Event{issued}, later.Add(-1), tenants.Active},
		"at the end":               {[]tenants.Event{issued}, later, tenants.Expired},
		"revoked before the end":   {[]tenants.Event{issued, revoked}, noon, tenants.Revoked},
		"revoked, then at the end": {[]tenants.Event{issued, revoked}, later, tenants.Revoked},
	} {
		var key tenants.APIKey
		for _, event := range test.given {
			key.Apply(event)
		}
		if got := key.State(test.at); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The name and limit of a working key can be changed;
// its limit is never above its organization's.
func TestAPIKeyChangeDecisions(t *testing.T) {
	change := func(name string, rate, ceiling int) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Change(tenants.ChangeAPIKey{KeySettings: tenants.KeySettings{Name: &name, RatePerMinute: &rate}, Ceiling: ceiling, At: noon})
		}
	}
	nothing := func(k tenants.APIKey) ([]tenants.Event, error) { return k.Change(tenants.ChangeAPIKey{At: noon}) }
	changed := func(name string, rate int, access tenants.Access) tenants.APIKeyChanged {
		return tenants.APIKeyChanged{APIKey: "key_1", Name: name, RatePerMinute: rate, Access: access, At: noon}
	}
	limited, narrowed := changed("Shop, live", 30, tenants.FullAccess), changed("Shop, live", 0, tenants.WriteAccess)
	expired := keyIssued()
	expired.ExpiresAt = &noon
	given := []tenants.Event{keyIssued()}
	access := func(access tenants.Access) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Change(tenants.ChangeAPIKey{KeySettings: tenants.KeySettings{Access: &access}, At: noon})
		}
	}
	decide(t, map[string]decision[tenants.APIKey]{
		"to read less":           {given: given, when: access(tenants.WriteAccess), then: []tenants.Event{narrowed}},
		"to read as much":        {given: given, when: access(tenants.FullAccess)},
		"to read more":           {given: []tenants.Event{keyIssued(), narrowed}, when: access(tenants.FullAccess), then: []tenants.Event{changed("Shop, live", 0, tenants.FullAccess)}},
		"no such access":         {given: given, when: access("read"), faults: []string{"access"}},
		"no access":              {given: given, when: access(""), faults: []string{"access"}},
		"name and limit":         {given: given, when: change(" Checkout ", 30, 60), then: []tenants.Event{changed("Checkout", 30, tenants.FullAccess)}},
		"the same":               {given: given, when: change("Shop, live", 0, 60)},
		"nothing":                {given: given, when: nothing},
		"no limit any more":      {given: []tenants.Event{keyIssued(), limited}, when: change("Shop, live", 0, 60), then: []tenants.Event{changed("Shop, live", 0, tenants.FullAccess)}},
		"as the organization's":  {given: given, when: change("Shop, live", 60, 60), then: []tenants.Event{changed("Shop, live", 60, tenants.FullAccess)}},
		"above the organization": {given: given, when: change("Shop, live", 61, 60), faults: []string{"rate_per_minute"}},
		"ceiling not known":      {given: given, when: change("Shop, live", 30, 0), then: []tenants.Event{limited}},
		"every fault at once":    {given: given, when: change("", -1, 60), faults: []string{"name", "rate_per_minute"}},
		"what is revoked":        {given: []tenants.Event{keyIssued(), tenants.APIKeyRevoked{APIKey: "key_1", At: noon}}, when: change("Checkout", 30, 60), fails: tenants.ErrKeyRevoked},
		"what has expired":       {given: []tenants.Event{expired}, when: change("Checkout", 30, 60), fails: tenants.ErrKeyExpired},
		"what is not":            {when: change("Checkout", 30, 60), fails: tenants.ErrNotFound},
	})
}

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
	issued.Sending = tenants.Sending{Lenient: true, Origins: []string{"https://shop.example"}}
	var key tenants.APIKey
	for _, event := range []tenants.Event{issued, tenants.APIKeyCurtailed{APIKey: "key_1", ExpiresAt: noon.Add(time.Minute), At: noon}} {
		key.Apply(event)
	}
	rotation := tenants.RotateAPIKey{To: "key_2", Digest: digest("cd34"), At: noon.Add(time.Second)}
	got := key.Successor(rotation)
	want := tenants.IssueAPIKey{
		ID: "key_2", Organization: "org_1", Project: "prj_1", Environment: tenants.Prod, Name: "Shop, live", Digest: digest("cd34"),
		At: rotation.At, ExpiresAt: later.Add(time.Second), RatePerMinute: 30, Replaces: "key_1", Access: tenants.WriteAccess,
		Sending: issued.Sending,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("successor:\n got %+v\nwant %+v", got, want)
	}
	// The same rotation again, a moment later: the key is there,
	// and can't be shown again.
	var successor tenants.APIKey
	events, err := successor.Issue(got)
	testenv.Must(t, err)
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
