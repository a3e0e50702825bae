package ledger

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// What ends a refusal is a grant of what is missing, or a tier whose
// allowance for the rest of the period covers it.
func TestRemedy(t *testing.T) {
	tiers := Tiers{Indie: {Quota: 100}, Bootstrapper: {Quota: 200}, Compliance: {Quota: 700}, Scale: {Quota: 1300}}
	for _, c := range []struct {
		at                      string
		quota, bytes, remaining int64
		want                    string
	}{
		{"2026-11-01T00:00:00Z", 100, 50, 20, "{30 [bootstrapper compliance scale]}"},
		{"2026-11-16T00:00:00Z", 100, 70, 10, "{60 [compliance scale]}"}, // half of the period is left
		{"2026-11-30T23:59:59Z", 100, 70, 10, "{60 []}"},
		{"2026-11-01T00:00:00Z", 1300, 70, 10, "{60 []}"},
		{"2026-11-01T00:00:00Z", 100, 5, 20, "{1 [bootstrapper compliance scale]}"}, // small, and refused because the allowance is exhausted
	} {
		instant := at(t, c.at)
		got := tiers.Remedy(Refusal{Quota: c.quota, Bytes: c.bytes, Remaining: c.remaining, Cause: Cause{At: instant}}, calendar.PeriodAt(instant, 1))
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s, %d of %d left for %d: %v, want %s", c.at, c.remaining, c.quota, c.bytes, got, c.want)
		}
	}
}
