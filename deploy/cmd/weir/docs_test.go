package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The pages that are made from the source are those that it makes now.
func TestPagesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	pages, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, "deploy", "docs", name))
		if err != nil || string(got) != string(want) {
			t.Errorf("deploy/docs/%s is not what the source makes of it: make docs (%v)", name, err)
		}
	}
}
