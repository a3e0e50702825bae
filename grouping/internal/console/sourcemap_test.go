package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// The page lists the maps of a project, or says how to upload some.
func TestSourceMapsPage(t *testing.T) {
	service := groupingtest.New(t)
	pages := pagesAs(t, service, "viewer")
	const path = "/console/errors/source-maps"
	if status, text := get(pages, path); status != 200 || !strings.Contains(text, "weir sourcemaps upload") || !strings.Contains(text, "Shop") {
		t.Errorf("without maps: %d %s", status, text)
	}
	_, _, err := service.SourceMaps.Upload(t.Context(), groups.Request{Who: identity.Principal{Organization: "acme"}}, "shop", groups.Upload{
		Release: "1.0", Name: "static/<app>.js", DebugID: "85314830-023f-4cf1-a267-535f4e37bb17",
		Text: []byte(`{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	status, text := get(pages, path+"?project=shop&release=1.0")
	for _, want := range []string{"~/static/&lt;app&gt;.js", "85314830023f4cf1a267535f4e37bb17", "Samples are looked at"} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("with a map %q is missing: %d %s", want, status, text)
		}
	}
	for query, want := range map[string]int{"?project=lair": 404, "?release=%00": 404, "?cursor=x": 400, "?release=2.0": 200} {
		if status, _ := get(pages, path+query); status != want {
			t.Errorf("%s: %d, want %d", query, status, want)
		}
	}
}

// A sample shows calls as they were written, with what was
// printed, and why others are shown as they were printed.
func TestMappedSample(t *testing.T) {
	var pool *pgxpool.Pool
	service := groupingtest.With(t, func(config *groups.Config) { pool = config.Pool })
	const script = "https://shop.example/static/app.js"
	at := func(column int) trace.Place { return trace.Place{File: script, Line: 1, Column: column} }
	tally, now := grouping.NewTally(), time.Now()
	tally.Add(grouping.Occurrence{Organization: "acme", Project: "shop", Entry: "e", Accepted: now, At: now, Severity: grouping.SeverityError, Release: "1.0",
		Error: grouping.Error{Type: "MappedError", StackTrace: []string{"at t (" + script + ":1:10)", "at u (" + script + ":1:20)"}, Mapping: trace.Mapping{
			at(10): {File: "src/cart.ts", Line: 7, Column: 3}, at(20): {Unmapped: trace.NoMap, Callee: ""},
		}}})
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := service.Errors.Count(t.Context(), tx, tally)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := pagesAs(t, service, "viewer")
	_, list := get(pages, "/console/errors?q=MappedError")
	status, text := get(pages, groupLink.FindStringSubmatch(list)[1])
	for _, want := range []string{"src/cart.ts:7:3", "as printed", script + ":1:10", "There was no source map of ~/static/app.js for release 1.0.", "source-maps?project=shop"} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("%q is missing: %d %s", want, status, text)
		}
	}
}
