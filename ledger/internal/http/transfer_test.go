package http_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/ledger"
)

// Entries are filtered, and exported whole as CSV and as lines over
// several pages.
func TestEntriesBy(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Scale)
	charges := make([]ledger.Charge, 1100)
	for i := range charges {
		charges[i] = a.NewCharge("acme", int64(1+i))
		charges[i].Cause.Project, charges[i].Cause.Key = fmt.Sprint("project", i%2), fmt.Sprint("key", i%5)
	}
	a.Book(t, charges...)
	const path = "/v1/organizations/acme/entries?from=2026-11-20T00:00:00Z"
	for filter, want := range map[string]int{
		"": 1100 + 1, "&reason=charged": 1100, "&reason=issued": 1, "&project=project1": 550, "&api_key=key3": 220, "&project=project1&api_key=key3&reason=charged": 110,
		"&project=other": 0, "&grant=none": 0, "&reason=charged&limit=7": 7,
	} {
		status, mediaType, text := a.getAs(t, path+filter, "text/csv")
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || status != 200 || mediaType != "text/csv" || len(rows) != 1+want || !slices.Contains(rows[0], "of_period") {
			t.Errorf("%q as CSV: %d %s, %d rows, want %d (%v)", filter, status, mediaType, len(rows), 1+want, err)
		}
		if status, _, text = a.getAs(t, path+filter, "application/x-ndjson"); status != 200 || strings.Count(text, "\n") != want {
			t.Errorf("%q as lines: %d, %d, want %d", filter, status, strings.Count(text, "\n"), want)
		}
	}
	if status, _, text := a.getAs(t, path+"&reason=charged&limit=1", "application/json"); status != 200 ||
		!strings.Contains(text, `"amount":1100`) || !strings.Contains(text, `"next_cursor":"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := a.getAs(t, path+"&reason=why", "application/json"); status != 400 || !strings.Contains(text, "?reason") {
		t.Errorf("an unknown reason: %d %s", status, text)
	}
	if status, _, _ := a.getAs(t, strings.Replace(path, "acme", "evil", 1), "text/csv"); status != 404 {
		t.Errorf("another's: %d", status)
	}
}
