package bus_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
)

// upload uploads a map of a script in this moment.
func (w *world) upload(upload groups.Upload) (postgres.SourceMap, bool) {
	w.t.Helper()
	kept, created, err := w.SourceMaps.Upload(w.t.Context(), w.request(), "shop", upload)
	if err != nil {
		w.t.Fatal(err)
	}
	return kept, created
}

// printed is an error of a build, with what else is in its entry's metadata.
func printed(t *testing.T, bundler, metadata string) string {
	t.Helper()
	text, err := os.ReadFile("../../sourcemap/testdata/" + bundler + ".trace")
	if err != nil {
		t.Fatal(err)
	}
	stack, _ := json.Marshal(strings.Split(strings.TrimSpace(string(text)), "\n"))
	return `{"level":"error","message":"checkout failed","metadata":{` + metadata + `},"error":{"type":"RangeError","message":"price of shoe is negative","stack_trace":` + string(stack) + `}}`
}

func fixture(t *testing.T, bundler string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../sourcemap/testdata/" + bundler + ".min.js.map")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// culprits are those of all groups.
func (w *world) culprits() (found []string) {
	for _, g := range groupsOf(w.t, w.pool, "acme") {
		found = append(found, g.Culprit)
	}
	slices.Sort(found)
	return found
}

// frames are those of the newest sample of the group with a culprit.
func (w *world) frames(culprit string) []postgres.Frame {
	w.t.Helper()
	for _, g := range groupsOf(w.t, w.pool, "acme") {
		if g.Culprit == culprit {
			detail, err := w.Groups.Detail(w.t.Context(), member, g.ID)
			if err != nil {
				w.t.Fatal(err)
			}
			return detail.Occurrences[0].Exceptions[0].Frames
		}
	}
	w.t.Fatalf("no group of %s among %v", culprit, w.culprits())
	return nil
}

const (
	release1  = `"release":"1.0"`
	asWritten = "priceOf (cart.ts)"
	asPrinted = "r.totalPrice (esbuild.min.js)"
)

// A map holds for the errors that are accepted after it came, whenever and
// however often they are read.
func TestMapsHoldFromTheirUpload(t *testing.T) {
	w := newWorld(t)
	line := printed(t, "esbuild", release1)
	before, during, after := w.accept(w.now.Add(-time.Second), line), w.accept(w.now.Add(time.Second), line), w.accept(w.now.Add(time.Minute), line)
	w.upload(groups.Upload{Release: "1.0", Name: "static/esbuild.min.js", Text: fixture(t, "esbuild")})
	w.consume(after)
	if got := w.culprits(); !slices.Equal(got, []string{asWritten}) {
		t.Fatalf("after the upload: %v", got)
	}
	w.consume(before, during)
	if got := w.culprits(); !slices.Equal(got, []string{asWritten, asPrinted}) {
		t.Errorf("with what came before: %v", got)
	}
	for _, g := range groupsOf(t, w.pool, "acme") {
		if want := map[string]int64{asPrinted: 2, asWritten: 1}[g.Culprit]; g.Count != want {
			t.Errorf("%s was counted %d times, want %d", g.Culprit, g.Count, want)
		}
	}
}

// Another map of the same script holds for later errors, the same one
// changes nothing, and a deleted one holds for none that come later.
func TestMapsAreReplaced(t *testing.T) {
	w := newWorld(t)
	line := printed(t, "esbuild", release1)
	first := groups.Upload{Release: "1.0", Name: "https://cdn.example/static/esbuild.min.js?v=1", Text: fixture(t, "esbuild")}
	kept, created := w.upload(first)
	if again, twice := w.upload(first); !created || twice || again.ID != kept.ID {
		t.Errorf("created %v and %v: %v, %v", created, twice, kept, again)
	}
	old := w.accept(w.now.Add(time.Minute), line)
	w.now = w.now.Add(time.Hour)
	other := first
	other.Text = []byte(strings.ReplaceAll(string(first.Text), "cart.ts", "basket.ts"))
	kept, _ = w.upload(other)
	renewed := w.accept(w.now.Add(time.Minute), line)
	w.now = w.now.Add(time.Hour)
	if err := w.SourceMaps.Delete(t.Context(), w.request(), "shop", kept.ID); err != nil {
		t.Fatal(err)
	}
	w.consume(w.accept(w.now.Add(time.Minute), line), renewed, old)
	if got, want := w.culprits(), []string{"priceOf (basket.ts)", asWritten, asPrinted}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if found, err := w.SourceMaps.List(t.Context(), "acme", "shop", "", postgres.MapPlace{}, 10); err != nil || len(found) != 0 {
		t.Errorf("listed are %v, %v", found, err)
	}
}

// A debug id says more than a release, which may have been built twice.
func TestDebugIDs(t *testing.T) {
	w := newWorld(t)
	const id = "85314830-023f-4cf1-a267-535f4e37bb17"
	esbuild := string(fixture(t, "esbuild"))
	w.upload(groups.Upload{Name: "app.js", Text: []byte(strings.Replace(esbuild, "{", `{"debugId":"`+id+`",`, 1))})
	w.upload(groups.Upload{Release: "1.0", Name: "static/esbuild.min.js", Text: []byte(strings.ReplaceAll(esbuild, "cart.ts", "wrong.ts"))})
	at := w.now.Add(time.Minute)
	w.consume(w.accept(at, printed(t, "esbuild", release1+`,"debug_ids":{"https://shop.example/static/esbuild.min.js":"`+strings.ToUpper(id)+`"}`)))
	if got := w.culprits(); !slices.Equal(got, []string{asWritten}) {
		t.Errorf("by the debug id: %v", got)
	}
}

// What is not mapped says why, once the project has maps.
func TestWhyNotMapped(t *testing.T) {
	w := newWorld(t)
	w.upload(groups.Upload{Release: "1.0", Name: "static/app.js", Text: fixture(t, "esbuild")})
	at := w.now.Add(time.Minute)
	failure := func(metadata, frame string) string {
		return `{"level":"error","metadata":{` + metadata + `},"error":{"type":"AppError","message":"x","stack_trace":["AppError: x","    ` + frame + `"]}}`
	}
	w.consume(w.accept(at,
		failure(``, "at alpha (https://a.example/static/app.js:1:174)"),
		failure(`"release":"2.0"`, "at beta (https://a.example/static/app.js:1:174)"),
		failure(release1, "at gamma (https://a.example/other/app.js:1:174)"),
		failure(release1, "at delta (https://a.example/static/app.js:9:1)"),
		failure(release1, "at epsilon (https://a.example/static/app.js:1)"),
	))
	for culprit, want := range map[string]string{
		"alpha (app.js)": "no_build", "beta (app.js)": "no_map", "gamma (app.js)": "no_map", "delta (app.js)": "no_position", "epsilon (app.js)": "no_column",
	} {
		if f := w.frames(culprit)[0]; f.Printed == nil || string(f.Printed.Unmapped) != want {
			t.Errorf("%s: %+v, want %s", culprit, f.Printed, want)
		}
	}
}

// Samples are shown as they were written once their map has come. They are
// looked at in steps, also by several at once.
func TestMapsThatComeLater(t *testing.T) {
	w := newWorld(t)
	var lines []string
	for _, bundler := range []string{"esbuild", "terser"} {
		lines = append(lines, printed(t, bundler, release1))
	}
	w.consume(w.accept(w.now, lines...), w.accept(w.now, printed(t, "esbuild", `"release":"other"`)))
	w.now = w.now.Add(time.Hour)
	w.upload(groups.Upload{Release: "1.0", Name: "static/esbuild.min.js", Text: fixture(t, "esbuild")})
	if err := w.SourceMaps.Remap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := w.frames(asPrinted)[0]; f.Printed != nil {
		t.Errorf("at once: %+v", f)
	}
	w.now = w.now.Add(time.Minute)
	if err := w.SourceMaps.Remap(t.Context()); err != nil {
		t.Fatal(err)
	}
	search, err := w.SourceMaps.Progress(t.Context(), "acme", "shop")
	if err != nil || !search.Ended || search.Groups != 2 || search.Samples != 1 {
		t.Errorf("searched %+v, %v", search, err)
	}
	var written, as int
	for _, g := range groupsOf(t, w.pool, "acme") {
		detail, err := w.Groups.Detail(t.Context(), member, g.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range detail.Occurrences {
			if f := o.Exceptions[0].Frames[0]; f.File == "src/cart.ts" && f.Function == "priceOf" && f.Printed.Line == 1 && f.Printed.Column == 174 {
				written++
			} else {
				as++
			}
		}
	}
	if written != 1 || as != 2 {
		t.Errorf("%d samples as written, %d as printed", written, as)
	}
}

// search has samples mapped anew.
func (w *world) search() {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	if err := w.SourceMaps.Remap(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// Groups that a map shows to be one are merged, whether the first error as it
// was written comes before they are looked at or after that, and say why. Who
// takes them apart again is not overruled.
func TestMapsJoinGroups(t *testing.T) {
	for _, first := range []string{"the error", "the search"} {
		w := newWorld(t)
		line := printed(t, "esbuild", release1)
		w.consume(w.accept(w.now, line))
		w.now = w.now.Add(time.Hour)
		w.upload(groups.Upload{Release: "1.0", Name: "static/esbuild.min.js", Text: fixture(t, "esbuild")})
		w.now = w.now.Add(time.Minute)
		later := w.accept(w.now, line)
		if first == "the search" {
			w.search()
		}
		w.consume(later)
		w.search()
		if got := w.culprits(); !slices.Equal(got, []string{asPrinted}) {
			t.Fatalf("%s first: %v", first, got)
		}
		who := member
		head := groupsOf(t, w.pool, "acme")[0]
		if head.Count != 2 || head.Members != 1 {
			t.Errorf("%s first: %+v", first, head)
		}
		activity, err := w.Groups.Activity(t.Context(), who, head.ID, 100, 10)
		if err != nil || len(activity) != 1 || activity[0].Kind != grouping.WasMerged || !strings.Contains(activity[0].Reason, "The source map of release 1.0 came") {
			t.Fatalf("%s first: %+v, %v", first, activity, err)
		}
		if _, err := w.Merges.Unmerge(t.Context(), groups.Request{Who: who}, groups.MergeRequest{Into: head.ID, Groups: activity[0].Groups}); err != nil {
			t.Fatal(err)
		}
		w.upload(groups.Upload{Release: "2.0", Name: "static/esbuild.min.js", Text: fixture(t, "esbuild")})
		w.search()
		if got := w.culprits(); !slices.Equal(got, []string{asWritten, asPrinted}) {
			t.Errorf("taken apart, %s first: %v", first, got)
		}
	}
}

// A storm of mapped errors costs the statements of any, and one more.
func TestMappedStatements(t *testing.T) {
	w := newWorld(t)
	w.upload(groups.Upload{Release: "1.0", Name: "static/esbuild.min.js", Text: fixture(t, "esbuild")})
	at := w.now.Add(time.Minute)
	lines := slices.Repeat([]string{printed(t, "esbuild", release1)}, 500)
	w.consume(w.accept(at, lines...)) // which is a spike: it is decided once
	count := func(records ...sharedbus.Record) int {
		counted := &counting{}
		err := pg.InTxAsSystem(t.Context(), w.pool, func(tx pgx.Tx) error {
			counted.Tx = tx
			return bus.Consumer{Errors: w.Errors}.Consume(t.Context(), counted, records)
		})
		if err != nil {
			t.Fatal(err)
		}
		return counted.statements
	}
	one, storm := count(w.accept(at, lines[0])), count(w.accept(at, lines...), w.accept(at.Add(time.Second), lines...))
	if storm > one {
		t.Errorf("one error takes %d statements, 1,000 take %d", one, storm)
	}
}

// counting counts the statements of a transaction.
type counting struct {
	pgx.Tx
	statements int
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.statements++
	return c.Tx.Query(ctx, sql, args...)
}

func (c *counting) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	c.statements++
	return c.Tx.Exec(ctx, sql, args...)
}
