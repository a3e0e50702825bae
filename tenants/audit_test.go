package tenants_test

import (
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

// -add writes missing golden files. It never changes
// one: what was written to an audit stays as it is.
var add = flag.Bool("add", false, "write the golden files that are missing")

// The audit shows every event as ever: another form
// would not match the lines that were written before.
func TestEveryEventIsAudited(t *testing.T) {
	for name, event := range samples() {
		subject, change := tenants.Audit(nil, event)
		if change.Target.ID == "" { // it is no beginning
			begun, _ := tenants.Audit(nil, beginningOf(t, subject))
			_, change = tenants.Audit(begun, event)
		}
		compareGolden(t, filepath.Join("testdata", "audit", name+".json"), change)
	}
}

// beginningOf is the event that starts a thing of the kind of subject.
func beginningOf(t *testing.T, subject tenants.Subject) tenants.Event {
	t.Helper()
	events := samples()
	for _, name := range slices.Sorted(maps.Keys(events)) {
		begun, change := tenants.Audit(nil, events[name])
		if change.Target.ID != "" && reflect.TypeOf(begun) == reflect.TypeOf(subject) {
			return events[name]
		}
	}
	t.Fatalf("no event starts a %T", subject)
	return nil
}

func compareGolden(t *testing.T, file string, change tenants.Change) {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{
		"action": change.Action, "at": change.At, "target": change.Target, "before": change.Before, "after": change.After,
	}, "", "  ")
	testenv.Must(t, err)
	addMissing(t, file, text)
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v: run go test ./tenants -add", err)
	} else if string(golden) != string(text)+"\n" {
		t.Errorf("%s:\n got %s\nwant %s", file, text, golden)
	}
}

func addMissing(t *testing.T, file string, text []byte) {
	t.Helper()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || !*add {
		return
	}
	testenv.Must(t, os.WriteFile(file, append(text, '\n'), 0o644))
}

// The set of events is closed: each declared one has a
// sample, and so a golden file and a form in the audit.
func TestEveryEventHasASample(t *testing.T) {
	sampled := map[string]bool{}
	for _, event := range samples() {
		sampled[reflect.TypeOf(event).Name()] = true
	}
	declared := declaredEvents(t)
	if len(declared) < 9 {
		t.Fatalf("found only %q", declared)
	}
	for _, name := range declared {
		if !sampled[name] {
			t.Errorf("%s has no sample in samples()", name)
		}
	}
}

// Anyone who goes through tenants.Events goes through all of them.
func TestEventsAreAll(t *testing.T) {
	var listed []string
	for _, event := range tenants.Events() {
		listed = append(listed, reflect.TypeOf(event).Name())
	}
	declared := declaredEvents(t)
	slices.Sort(listed)
	slices.Sort(declared)
	if !slices.Equal(listed, declared) {
		t.Errorf("listed %q, declared %q", listed, declared)
	}
}

// declaredEvents are the types of the package that have the method of an Event.
func declaredEvents(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	testenv.Must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		testenv.Must(t, err)
		for _, declaration := range file.Decls {
			method, ok := declaration.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "meta" {
				continue
			}
			if receiver, ok := method.Recv.List[0].Type.(*ast.Ident); ok {
				names = append(names, receiver.Name)
			}
		}
	}
	return names
}

// The audit of a change has neither a secret nor its digest.
func TestAuditShowsNoSecret(t *testing.T) {
	for name, event := range samples() {
		_, change := tenants.Audit(nil, event)
		for _, hidden := range []string{"-hash", "argon2", memberAdded().PasswordHash} {
			if strings.Contains(change.After.JSON(), hidden) {
				t.Errorf("%s shows %q: %s", name, hidden, change.After.JSON())
			}
		}
	}
}

// A change is shown as what differs after it.
func TestDifferences(t *testing.T) {
	before, err := tenants.ParseFields(`{"name":"Shop","scopes":["a:b","c:d"],"rate":60,"state":"active"}`)
	testenv.Must(t, err)
	after := tenants.Fields{"name": "Shop", "scopes": []string{"a:b"}, "rate": 30, "reason": "leaked"}
	want := []tenants.Difference{{"rate", "60", "30"}, {"reason", "", "leaked"}, {"scopes", "a:b, c:d", "a:b"}, {"state", "active", ""}}
	if got := before.Differences(after); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := tenants.Fields(nil).Differences(nil); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

// A filter that no line can match is refused,
// field by field, instead of finding nothing.
func TestAuditFilter(t *testing.T) {
	for name, test := range map[string]struct {
		filter tenants.AuditFilter
		faults []string
	}{
		"everything":          {tenants.AuditFilter{Organization: "org_1"}, nil},
		"all that there is":   {tenants.AuditFilter{Actor: "mem_1", Action: "api_key.revoked", Target: "key_1", From: noon, To: later}, nil},
		"only a beginning":    {tenants.AuditFilter{From: later}, nil},
		"only an end":         {tenants.AuditFilter{To: noon}, nil},
		"no time":             {tenants.AuditFilter{From: noon, To: noon}, []string{"to"}},
		"an end before":       {tenants.AuditFilter{From: later, To: noon}, []string{"to"}},
		"a part of an action": {tenants.AuditFilter{Action: "api_key"}, []string{"action"}},
		"every fault at once": {tenants.AuditFilter{Actor: "a b", Target: "a\x00", Action: strings.Repeat("a", 50) + ".b", From: later, To: noon},
			[]string{"actor", "target", "action", "to"}},
	} {
		if got := faultyFields(test.filter.Check()); !slices.Equal(got, test.faults) {
			t.Errorf("%s: faults %q, want %q", name, got, test.faults)
		}
	}
}
