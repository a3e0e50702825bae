package calendar

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339Nano, text)
	testenv.Must(t, err)
	return instant
}

// A period is the span between two anchor days; the anchor is
// clamped to the month's last day.
func TestPeriodAt(t *testing.T) {
	tests := []struct {
		name       string
		at         string
		anchor     int
		start, end string
	}{
		{"calendar month", "2026-11-20T10:00:00Z", 1, "2026-11-01", "2026-12-01"},
		{"first instant belongs to the new period", "2026-12-01T00:00:00Z", 1, "2026-12-01", "2027-01-01"},
		{"last instant belongs to the old one", "2026-11-30T23:59:59.999999999Z", 1, "2026-11-01", "2026-12-01"},
		{"before the anchor day", "2026-03-14T23:59:59Z", 15, "2026-02-15", "2026-03-15"},
		{"on the anchor day", "2026-03-15T00:00:00Z", 15, "2026-03-15", "2026-04-15"},
		{"across the year", "2027-01-03T00:00:00Z", 10, "2026-12-10", "2027-01-10"},
		{"31 in February", "2026-02-28T00:00:00Z", 31, "2026-02-28", "2026-03-31"},
		{"31 in a leap February", "2028-02-28T23:00:00Z", 31, "2028-01-31", "2028-02-29"},
		{"29 in a leap year", "2028-02-29T12:00:00Z", 29, "2028-02-29", "2028-03-29"},
		{"30 in a leap year", "2024-02-29T00:00:00Z", 30, "2024-02-29", "2024-03-30"},
		{"29 in a common year", "2027-02-28T12:00:00Z", 29, "2027-02-28", "2027-03-29"},
		{"31 in a month of 30", "2026-04-30T00:00:00Z", 31, "2026-04-30", "2026-05-31"},
		{"another zone is the same instant", "2026-12-01T01:00:00+02:00", 1, "2026-11-01", "2026-12-01"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := PeriodAt(at(t, test.at), test.anchor)
			want := Period{at(t, test.start+"T00:00:00Z"), at(t, test.end+"T00:00:00Z")}
			if !got.Start.Equal(want.Start) || !got.End.Equal(want.End) {
				t.Errorf("PeriodAt = %v, want %v", got, want)
			}
		})
	}
}

// For every anchor day, over nine years with two leap days: each hour
// is in exactly one period, periods have no gap or overlap, and each
// has 28 to 31 days.
func TestPeriodsCoverAllTime(t *testing.T) {
	for anchor := 1; anchor <= 31; anchor++ {
		last := PeriodAt(at(t, "2023-06-15T00:00:00Z"), anchor)
		for now := at(t, "2023-06-15T00:00:00Z"); now.Year() < 2032; now = now.Add(time.Hour) {
			period := PeriodAt(now, anchor)
			if !period.Contains(now) {
				t.Fatalf("anchor %d: %v does not hold %v", anchor, period, now)
			}
			if period != last && period.Start != last.End {
				t.Fatalf("anchor %d: %v does not follow %v", anchor, period, last)
			}
			if days := period.End.Sub(period.Start).Hours() / 24; days < 28 || days > 31 {
				t.Fatalf("anchor %d: %v is %v days long", anchor, period, days)
			}
			last = period
		}
	}
}
