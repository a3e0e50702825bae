package former

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

// hostile is a trace on which versions 3 and 4 panicked.
const hostile = "thread 'a' panicked at ', b\n   1: a::b"

func versionsOf(hashes []grouping.ScopedHash) (versions []int) {
	for _, h := range hashes {
		versions = append(versions, h.Version)
	}
	return slices.Compact(versions)
}

// Each version reads what others could not. Versions
// before the oldest requested cost nothing.
func TestVersions(t *testing.T) {
	var g Grouper
	for oldest, want := range map[int][]int{1: {1, 3, 4}, 2: {1, 3, 4}, 3: {3, 4}, 4: {4}, grouping.Version: nil} {
		e := grouping.Error{StackTrace: []string{hostile}} // whose type holds no id, so the first and the second are one
		if got := versionsOf(g.Hashes(e, oldest)); !slices.Equal(got, want) {
			t.Errorf("since version %d hashes of %v, want %v", oldest, got, want)
		}
	}
}

// No error panics, and each is answered the same twice.
func FuzzHashes(f *testing.F) {
	for _, e := range append(pinned(f), printed(f)...) {
		f.Add(e.Type, e.Message, strings.Join(e.StackTrace, "\n"))
	}
	f.Add("", "", hostile)
	f.Fuzz(func(t *testing.T, typ, message, stack string) {
		var g, h Grouper
		e := grouping.Error{Type: typ, Message: message, StackTrace: []string{stack}}
		first := g.Hashes(e, 1)
		g.Hashes(grouping.Error{Type: stack, StackTrace: []string{message, typ}}, 1)
		if !slices.Equal(first, g.Hashes(e, 1)) || !slices.Equal(first, h.Hashes(e, 1)) {
			t.Fatal("the hash depends on what came before")
		}
	})
}

// pinned are the errors that pin the versions.
func pinned(f *testing.F) (errors []grouping.Error) {
	f.Helper()
	paths, err := filepath.Glob("v*/testdata/errors.jsonl")
	if err != nil || len(paths) == 0 {
		f.Fatal(paths, err)
	}
	for _, path := range paths {
		for line := range bytes.Lines(read(f, path)) {
			var e grouping.Error
			if err := json.Unmarshal(line, &e); err != nil {
				f.Fatal(path, err)
			}
			errors = append(errors, e)
		}
	}
	return errors
}

// printed are traces as runtimes print them.
func printed(f *testing.F) (errors []grouping.Error) {
	f.Helper()
	for _, part := range strings.Split(string(read(f, "../../testdata/traces.txt")), "=== ")[1:] {
		_, stack, _ := strings.Cut(part, "\n")
		errors = append(errors, grouping.Error{StackTrace: []string{stack}})
	}
	return errors
}

func read(f *testing.F, path string) []byte {
	f.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return content
}
