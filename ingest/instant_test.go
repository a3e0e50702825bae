package ingest_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

// Every calendar day of the years 0000 to 9999 parses as in the
// standard library, and others do not.
func TestParseInstantKnowsTheCalendar(t *testing.T) {
	for day := time.Date(0, 1, 1, 23, 59, 58, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 1) {
		text := day.Format(time.RFC3339)
		at, ok := ingest.ParseInstant([]byte(text))
		if !ok || at.Seconds != day.Unix() {
			t.Fatalf("%s: got %d, %t, want %d", text, at.Seconds, ok, day.Unix())
		}
		if day.AddDate(0, 0, 1).Day() == 1 {
			next := []byte(text)
			if next[9]++; next[9] > '9' {
				next[8], next[9] = next[8]+1, '0'
			}
			if _, ok := ingest.ParseInstant(next); ok {
				t.Fatalf("%s exists", next)
			}
		}
	}
}

// Only one form is a timestamp; a fraction has 1 to 9 digits, and the offset is zero.
func TestParseInstantForms(t *testing.T) {
	for text, nanos := range map[string]uint32{
		"2026-01-31T12:00:00Z":           0,
		"2026-01-31T12:00:00.5Z":         500_000_000,
		"2026-01-31T12:00:00.000000001Z": 1,
		"2024-02-29T23:59:59.999999999Z": 999_999_999,
		"0000-02-29T00:00:00Z":           0,
	} {
		if at, ok := ingest.ParseInstant([]byte(text)); !ok || at.Nanos != nanos || at.Time().Format(time.RFC3339Nano) != text {
			t.Errorf("%s: got %v, %t", text, at, ok)
		}
	}
	if at, ok := ingest.ParseInstant([]byte("2026-01-31T12:00:00.25+00:00")); !ok || at.String() != "2026-01-31T12:00:00.25Z" {
		t.Errorf("+00:00 is %v, %t", at, ok)
	}
	for _, text := range []string{
		"", "Z", "2026-01-31", "2026-01-31T12:00Z", "2026-01-31 12:00:00Z", "2026-01-31t12:00:00Z", "2026-01-31T12:00:00z",
		"2026-01-31T12:00:00", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00.1234567890Z", "2026-01-31T12:00:00,5Z", "2026-01-31T24:00:00Z",
		"2026-01-31T12:60:00Z", "2016-12-31T23:59:60Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
		"2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "+026-01-31T12:00:00Z", "2026-1 -31T12:00:00Z", "20:6-01-31T12:00:00Z", "2026-01-31T12:00:00.1 Z", "12026-01-31T12:00:00Z",
		"2026-01-31T12:00:00-00:00", "2026-01-31T12:00:00+02:00", "2026-01-31T12:00:00+0000", "2026-01-31T12:00:00Z+00:00", "+00:00", "2026-01-31T12:00:00.5+02:00Z", "２026-01-31T12:00Z",
	} {
		if _, ok := ingest.ParseInstant([]byte(text)); ok {
			t.Errorf("%q is a timestamp", text)
		}
	}
}
