package tenants_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

func sessionStarted() tenants.SessionStarted {
	return tenants.SessionStarted{
		Session: "ses_1", Organization: "org_1", Member: "mem_1", Role: tenants.Viewer, Digest: digest("ab12"),
		At: noon, ExpiresAt: noon.Add(tenants.SessionIdleTimeout),
	}
}

func passkeySession() tenants.SessionStarted {
	started, ends := sessionStarted(), noon.Add(tenants.SessionLifetime)
	started.Method, started.EndsAt = tenants.ByPasskey, &ends
	return started
}

func namedSession() tenants.SessionStarted {
	started := passkeySession()
	started.Name = "Ada"
	return started
}

func sessionRenewed() tenants.SessionRenewed {
	return renewedAt(noon.Add(tenants.RenewAfter), "cd34")
}

func renewedAt(at time.Time, secret string) tenants.SessionRenewed {
	return tenants.SessionRenewed{
		Session: "ses_1", Digest: digest(secret), Salt: "salt", At: at, ExpiresAt: at.Add(tenants.SessionIdleTimeout),
		ReplacedUntil: at.Add(tenants.SecretOverlap),
	}
}

func sessionConfirmed() tenants.SessionConfirmed {
	return tenants.SessionConfirmed{
		Session: "ses_1", Method: tenants.ByPassword, Digest: digest("ef56"), At: later, ExpiresAt: later.Add(tenants.SessionIdleTimeout),
		ReplacedUntil: later.Add(tenants.SecretOverlap),
	}
}

// A session is started once, for its member's
// organization and in the member's role, and ends once.
func TestSessionDecisions(t *testing.T) {
	start := func(s tenants.Session) ([]tenants.Event, error) {
		return s.Start(tenants.StartSession{
			ID: "ses_1", Digest: digest("ab12"), Method: tenants.ByPasskey, At: noon,
			Member: tenants.Member{ID: "mem_1", Organization: "org_1", Role: tenants.Viewer, Name: "Ada"},
		})
	}
	end := func(s tenants.Session) ([]tenants.Event, error) {
		return s.End(tenants.Revoke{Reason: "signed out", At: later})
	}
	role := func(role tenants.Role) func(tenants.Session) ([]tenants.Event, error) {
		return func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, later) }
	}
	changed := tenants.SessionRoleChanged{Session: "ses_1", Role: tenants.Admin, At: later}
	started, ended := namedSession(), tenants.SessionEnded{Session: "ses_1", Reason: "signed out", At: later}
	decide(t, map[string]decision[tenants.Session]{
		"start":                   {when: start, then: []tenants.Event{started}},
		"start again":             {given: []tenants.Event{started}, when: start, fails: tenants.ErrReused},
		"end":                     {given: []tenants.Event{started}, when: end, then: []tenants.Event{ended}},
		"end again":               {given: []tenants.Event{started, ended}, when: end},
		"another role":            {given: []tenants.Event{started}, when: role(tenants.Admin), then: []tenants.Event{changed}},
		"the same role":           {given: []tenants.Event{started, changed}, when: role(tenants.Admin)},
		"another role at the end": {given: []tenants.Event{started, ended}, when: role(tenants.Admin)},
		"the role of nothing":     {when: role(tenants.Admin), fails: tenants.ErrNotFound},
		"end what is not":         {when: end, fails: tenants.ErrNotFound},
	})
}

// A session is renewed when it is used after a while,
// by its newest secret, and never beyond its end.
func TestSessionRenewal(t *testing.T) {
	renew := func(at time.Time, presented string) func(tenants.Session) ([]tenants.Event, error) {
		return func(s tenants.Session) ([]tenants.Event, error) {
			return s.Renew(tenants.RenewSession{Presented: digest(presented).Hash, Digest: digest("cd34"), Salt: "salt", At: at})
		}
	}
	due, started, legacy := noon.Add(tenants.RenewAfter), passkeySession(), sessionStarted()
	given := []tenants.Event{started}
	nearEnd := started
	nearEnd.ExpiresAt = started.EndsAt.Add(-time.Hour)
	last := renewedAt(nearEnd.ExpiresAt.Add(-time.Second), "cd34")
	last.ExpiresAt, last.ReplacedUntil = *started.EndsAt, nearEnd.ExpiresAt
	ended := tenants.SessionEnded{Session: "ses_1", At: noon}
	decide(t, map[string]decision[tenants.Session]{
		"when it is due":                {given: given, when: renew(due, "ab12"), then: []tenants.Event{sessionRenewed()}},
		"before":                        {given: given, when: renew(due.Add(-time.Second), "ab12")},
		"by the secret before":          {given: []tenants.Event{started, sessionRenewed()}, when: renew(due.Add(tenants.RenewAfter), "ab12")},
		"again at once":                 {given: []tenants.Event{started, sessionRenewed()}, when: renew(due, "cd34")},
		"again when due":                {given: []tenants.Event{started, renewedAt(due, "ab12")}, when: renew(due.Add(tenants.RenewAfter), "ab12"), then: []tenants.Event{renewedAt(due.Add(tenants.RenewAfter), "cd34")}},
		"up to the end":                 {given: []tenants.Event{nearEnd}, when: renew(last.At, "ab12"), then: []tenants.Event{last}},
		"one that can't last longer":    {given: []tenants.Event{nearEnd, last}, when: renew(last.ExpiresAt.Add(-time.Second), "cd34")},
		"one of before there were":      {given: []tenants.Event{legacy}, when: renew(due, "ab12")},
		"after it ended by itself":      {given: given, when: renew(started.ExpiresAt, "ab12"), fails: tenants.ErrNotFound},
		"after the sign-out":            {given: append(given, ended), when: renew(due, "ab12"), fails: tenants.ErrNotFound},
		"one that was never started":    {when: renew(due, "ab12"), fails: tenants.ErrNotFound},
		"confirming renews as well":     {given: append(given, sessionConfirmed()), when: renew(due, "ef56")},
		"the idle clock starts over":    {given: append(given, sessionConfirmed()), when: renew(later.Add(tenants.RenewAfter), "ef56"), then: []tenants.Event{renewedAt(later.Add(tenants.RenewAfter), "cd34")}},
		"a stranger's secret renews no": {given: given, when: renew(due, "0000")},
	})
}

// A member who proves their identity again continues with another secret.
func TestSessionConfirmation(t *testing.T) {
	confirm := func(at time.Time) func(tenants.Session) ([]tenants.Event, error) {
		return func(s tenants.Session) ([]tenants.Event, error) {
			return s.Confirm(tenants.ConfirmSession{Method: tenants.ByPassword, Digest: digest("ef56"), At: at})
		}
	}
	started := passkeySession()
	given := []tenants.Event{started}
	decide(t, map[string]decision[tenants.Session]{
		"confirm":                  {given: given, when: confirm(later), then: []tenants.Event{sessionConfirmed()}},
		"after it ended by itself": {given: given, when: confirm(started.ExpiresAt), fails: tenants.ErrNotFound},
		"after the sign-out":       {given: append(given, tenants.SessionEnded{Session: "ses_1", At: noon}), when: confirm(later), fails: tenants.ErrNotFound},
		"what is not":              {when: confirm(later), fails: tenants.ErrNotFound},
	})
}

// The previous secret works for its overlap, the one before no longer.
func TestSessionSecretsFollowEachOther(t *testing.T) {
	var s tenants.Session
	for _, event := range []tenants.Event{passkeySession(), renewedAt(later, "cd34"), sessionConfirmed()} {
		s.Apply(event)
	}
	want := tenants.Replaced{Digest: digest("cd34"), Until: later.Add(tenants.SecretOverlap)}
	if s.Digest != digest("ef56") || s.Replaced != want || s.Dropped != digest("ab12") || !s.AuthenticatedAt.Equal(later) {
		t.Errorf("got %+v", s)
	}
	s.Apply(renewedAt(later.Add(tenants.RenewAfter), "0123"))
	if s.Dropped != (tenants.SecretDigest{}) || s.Replaced.Digest != digest("ef56") || s.Replaced.Salt != "salt" {
		t.Errorf("after a while: %+v", s)
	}
}

// A thing is the same without its replaced
// events, whatever else happens to it.
func TestReplacedEventsChangeNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for subject, events := range eventsBySubject() {
		for range 200 {
			history := randomHistory(t, random, events)
			if whole, less := tenants.Fold(history...), tenants.Fold(withoutReplaced(t, history)...); !reflect.DeepEqual(whole, less) {
				t.Fatalf("%s after %+v:\n%+v\nwithout what is replaced:\n%+v", subject, history, whole, less)
			}
		}
	}
}

// A password set by a code removed the identity at
// the provider, which another password does not.
func TestAResetIsReplacedByAResetAlone(t *testing.T) {
	reset, change := tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: "x", Reset: true}, tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: "y"}
	for _, then := range [][]tenants.Event{{change}, {change, change}, {reset}, {reset, change}} {
		history := append([]tenants.Event{memberAdded(), memberIdentified(), reset}, then...)
		less := withoutReplaced(t, history)
		if member := tenants.Fold(less...).(*tenants.Member); member.Identity != (tenants.ProviderIdentity{}) || len(less) > 4 {
			t.Errorf("%d of %d events are left, and make %+v", len(less), len(history), member)
		}
	}
}

// eventsBySubject are the samples of one type of thing, sorted by name.
func eventsBySubject() map[string][]tenants.Event {
	samples, bySubject := samples(), map[string][]tenants.Event{}
	names := make([]string, 0, len(samples))
	for name := range samples {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		subject := fmt.Sprintf("%T", tenants.Fold(samples[name]))
		bySubject[subject] = append(bySubject[subject], samples[name])
	}
	return bySubject
}

// randomHistory is a dozen events with random content.
func randomHistory(t *testing.T, random *rand.Rand, events []tenants.Event) (history []tenants.Event) {
	t.Helper()
	for range 12 {
		history = append(history, varied(t, random, events[random.IntN(len(events))]))
	}
	return history
}

// varied is an event with random words, numbers and switches.
func varied(t *testing.T, random *rand.Rand, event tenants.Event) tenants.Event {
	t.Helper()
	name, data, err := tenants.EncodeEvent(event)
	testenv.Must(t, err)
	var members map[string]any
	testenv.Must(t, json.Unmarshal(data, &members))
	for member, value := range members {
		switch value := value.(type) {
		case bool:
			members[member] = random.IntN(2) == 0
		case float64:
			members[member] = random.IntN(100)
		case string:
			if !isTime(value) {
				members[member] = fmt.Sprint(value, random.IntN(100))
			}
		}
	}
	data, err = json.Marshal(members)
	testenv.Must(t, err)
	other, err := tenants.DecodeEvent(name, data)
	testenv.Must(t, err)
	return other
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// withoutReplaced leaves out events that later ones of the same type replace.
func withoutReplaced(t *testing.T, history []tenants.Event) (left []tenants.Event) {
	t.Helper()
	for i, event := range history {
		as, count := tenants.ReplacementOf(event), 0
		for _, later := range history[i+1:] {
			if tenants.EventName(later) == tenants.EventName(event) && (!isOn(t, event, as.Switch) || isOn(t, later, as.Switch)) {
				count++
			}
		}
		if as.By == 0 || count < as.By {
			left = append(left, event)
		}
	}
	return left
}

// isOn reports whether a member of an event's data is true.
func isOn(t *testing.T, event tenants.Event, member string) bool {
	t.Helper()
	if member == "" {
		return false
	}
	_, data, err := tenants.EncodeEvent(event)
	testenv.Must(t, err)
	var members map[string]any
	testenv.Must(t, json.Unmarshal(data, &members))
	return members[member] == true
}
