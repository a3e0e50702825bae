package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A dashboard has the queries of its panels.
type dashboard struct {
	UID    string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func main() {
	fmt.Println("groups:")
	for _, file := range os.Args[1:] {
		if err := print(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// print writes a group of rules. Text in JSON is text in YAML.
func print(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var board dashboard
	if err := json.Unmarshal(content, &board); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Printf("  - name: %s\n    rules:\n", filepath.Base(file))
	for i, panel := range board.Panels {
		for j, target := range panel.Targets {
			expr, err := json.Marshal(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
			if err != nil {
				return err
			}
			fmt.Printf("      - {record: \"%s:%d:%d\", expr: %s} # %s\n", strings.ReplaceAll(board.UID, "-", "_"), i, j, expr, panel.Title)
		}
	}
	return nil
}
