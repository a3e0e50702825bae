package tenants

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of reports of failed sign-ins: the first wrong password
// and the first refusal are reported at once, then one line per
// member and hour, with their number and the first networks.
const (
	FailureReportInterval = time.Hour
	maxNetworks           = 5
)

// SignInFailures are unreported failed attempts
// to sign in as a member, or one report of them.
type SignInFailures struct {
	ID           string // empty until reported
	Organization string
	Member       string
	Failed       int      // with a wrong password
	Refused      int      // after too many attempts
	Networks     []string // of the first few attempts
	Since        time.Time
	ReportedAt   time.Time // last report; zero: never
	RefusalsAt   time.Time // last report with refused ones; zero: never
}

// MemberSignInsFailed reports failed attempts to sign in as a member.
type MemberSignInsFailed struct {
	Failures     string    `json:"failures"`
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	Failed       int       `json:"failed,omitempty"`
	Refused      int       `json:"refused,omitempty"`
	Networks     []string  `json:"networks,omitempty"`
	Since        time.Time `json:"since"`
	At           time.Time `json:"at"`
}

func (e MemberSignInsFailed) meta() eventMeta {
	return eventMeta{"tenants.v1.member_sign_ins_failed", Unpublished, "member.sign_ins_failed", e.At, &SignInFailures{}, kept}
}

// Add adds another count.
func (f SignInFailures) Add(more SignInFailures) SignInFailures {
	if f.Since.IsZero() {
		f.Since = more.Since
	}
	f.Failed, f.Refused = f.Failed+more.Failed, f.Refused+more.Refused
	for _, network := range more.Networks {
		f = f.WithNetwork(network)
	}
	return f
}

// WithNetwork adds the network of an attempt.
func (f SignInFailures) WithNetwork(network string) SignInFailures {
	if len(f.Networks) < maxNetworks && !slices.Contains(f.Networks, network) {
		f.Networks = append(slices.Clone(f.Networks), network)
	}
	return f
}

// Due reports whether there is something to report,
// and the last report of its kind is old enough: wrong
// passwords must not delay the report of refusals.
func (f SignInFailures) Due(now time.Time) bool {
	old := func(reported time.Time) bool { return !now.Before(reported.Add(FailureReportInterval)) }
	return f.Failed+f.Refused > 0 && old(f.ReportedAt) || f.Refused > 0 && old(f.RefusalsAt)
}

// Reported is what is left after a report.
func (f SignInFailures) Reported(at time.Time) SignInFailures {
	left := SignInFailures{Organization: f.Organization, Member: f.Member, ReportedAt: at, RefusalsAt: f.RefusalsAt}
	if f.Refused > 0 {
		left.RefusalsAt = at
	}
	return left
}

// Report is the event that reports them.
func (f SignInFailures) Report(id string, at time.Time) MemberSignInsFailed {
	return MemberSignInsFailed{
		Failures: id, Organization: f.Organization, Member: f.Member, Failed: f.Failed, Refused: f.Refused,
		Networks: f.Networks, Since: f.Since, At: at,
	}
}

// Apply applies the event of a report.
func (f *SignInFailures) Apply(event Event) {
	switch e := event.(type) {
	case MemberSignInsFailed:
		*f = SignInFailures{
			ID: e.Failures, Organization: e.Organization, Member: e.Member, Failed: e.Failed, Refused: e.Refused,
			Networks: e.Networks, Since: e.Since, ReportedAt: e.At,
		}
	default:
		panic(fmt.Sprintf("BUG: failed sign-ins do not know %T", event))
	}
}

func (f *SignInFailures) audited() (Target, Fields) {
	return Target{"sign_in_failures", f.ID, ""}, Fields{
		"member": f.Member, "failed": f.Failed, "refused": f.Refused, "networks": f.Networks, "since": f.Since,
	}
}
