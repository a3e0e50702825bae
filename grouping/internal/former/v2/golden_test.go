package v2

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
)

// Groups are found by these hashes, so they never change.
func TestGoldenHashes(t *testing.T) {
	var got [lastVersion + 1]strings.Builder
	var g Grouper
	for _, k := range kins(t) {
		for _, h := range g.Hashes(k.Error) {
			fmt.Fprintf(&got[h.Version], "%s %s %s\n", h.Hash, h.Scope, k.Name)
		}
	}
	for version := firstVersion; version <= lastVersion; version++ {
		want, err := os.ReadFile(fmt.Sprintf("testdata/hashes-v%d.txt", version))
		if err != nil {
			t.Fatal(err)
		}
		if got[version].String() != string(want) {
			t.Errorf("hashes of version %d have moved:\n%s", version, got[version].String())
		}
	}
}

type sentError struct {
	Name string
	grouping.Error
}

// kins are errors of every language, those with ids in their types last.
func kins(t *testing.T) (errors []sentError) {
	t.Helper()
	file, err := os.Open("testdata/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var k sentError
		if err := json.Unmarshal(lines.Bytes(), &k); err != nil {
			t.Fatal(err)
		}
		errors = append(errors, k)
	}
	return errors
}

func BenchmarkHashes(b *testing.B) {
	e := grouping.Error{Type: "com.acme.A", Message: "cannot pay", StackTrace: strings.Split(strings.Repeat("\tat com.acme.B.c(B.java:1)\n", 11), "\n")}
	var g Grouper
	for b.Loop() {
		g.Hashes(e)
	}
}
