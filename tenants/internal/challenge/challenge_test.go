package challenge_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// A challenge is answered once, in time, for its purpose
// and by its subject; a wrong attempt uses it up, too.
func TestOneAnswer(t *testing.T) {
	now := tenantstest.Noon
	challenges := challenge.New(tenantstest.Open(t), func() time.Time { return now }, rand.Reader)
	for name, c := range map[string]struct {
		purpose, subject string
		after            time.Duration
		want             string
	}{
		"in time":                 {"sign in", "ses_1", challenge.Lifetime - time.Second, `7`},
		"too late":                {"sign in", "ses_1", challenge.Lifetime, ""},
		"for something else":      {"confirm", "ses_1", 0, ""},
		"by somebody else":        {"sign in", "ses_2", 0, ""},
		"by nobody in particular": {"sign in", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ticket, err := challenges.Issue(t.Context(), challenge.Challenge{Purpose: "sign in", Subject: "ses_1", Data: []byte(`7`), Lasts: challenge.Lifetime})
			testenv.Must(t, err)
			now = now.Add(c.after)
			data, err := challenges.Take(t.Context(), ticket.Reveal(), c.purpose, c.subject)
			if string(data) != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, challenge.ErrNone) {
				t.Errorf("got %s, %v; want %s", data, err, c.want)
			}
			if data, err := challenges.Take(t.Context(), ticket.Reveal(), "sign in", "ses_1"); !errors.Is(err, challenge.ErrNone) {
				t.Errorf("a second time: %s, %v", data, err)
			}
		})
	}
	for _, ticket := range []string{"", "weirtkt_", "weirtkt_0123456789abcdef0123456789abcdef0123456789abcdef"} {
		if _, err := challenges.Take(t.Context(), ticket, "sign in", ""); !errors.Is(err, challenge.ErrNone) {
			t.Errorf("the ticket %q: %v", ticket, err)
		}
	}
}
