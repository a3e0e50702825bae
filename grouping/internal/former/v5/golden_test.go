package v5

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Groups are found by these hashes, so they never change.
func TestGoldenHashes(t *testing.T) {
	want, err := os.ReadFile("testdata/hashes-v5.txt")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("testdata/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got strings.Builder
	var g Grouper
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var sent struct {
			Name string
			Error
		}
		if err := json.Unmarshal(lines.Bytes(), &sent); err != nil {
			t.Fatal(err)
		}
		for _, h := range g.Hashes(sent.Error) {
			fmt.Fprintf(&got, "%s %s %s\n", h.Hash, h.Scope, sent.Name)
		}
	}
	if got.String() != string(want) {
		t.Errorf("hashes of version %d have moved:\n%s", version, got.String())
	}
}
