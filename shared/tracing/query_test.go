package tracing

import "testing"

// A statement is named by its first word, if that is known.
func TestOperation(t *testing.T) {
	for sql, want := range map[string]string{
		"commit": "commit", "\n\tSELECT 1": "select", "INSERT INTO x": "insert", "secret": "query", "": "query", "-- why\nSELECT": "query",
	} {
		if got := operationOf(sql); got != want {
			t.Errorf("%q: %q, want %q", sql, got, want)
		}
	}
}
