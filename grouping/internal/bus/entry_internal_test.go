package bus

import (
	"testing"
	"time"
)

// An entry of the year 9999 counts as of its acceptance:
// else its group would head every list until then.
func TestTheYear9999HeadsNoList(t *testing.T) {
	accepted := time.Date(2026, 11, 21, 12, 0, 0, 1500, time.UTC)
	for text, want := range map[string]time.Time{
		"9999-12-31T23:59:59.999999999Z": accepted.Truncate(time.Microsecond),
		"2026-11-21T12:00:00.000002Z":    accepted.Truncate(time.Microsecond),
		"2026-11-21T11:59:59.0000019Z":   time.Date(2026, 11, 21, 11, 59, 59, 1000, time.UTC),
		"0000-01-01T00:00:00Z":           time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"yesterday":                      accepted.Truncate(time.Microsecond),
	} {
		if got := eventTime(text, accepted); !got.Equal(want) {
			t.Errorf("%s is seen at %s, want %s", text, got, want)
		}
	}
}
