package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	fmt.Println("groups:")
	for _, file := range os.Args[1:] {
		if err := show(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// show prints a group of rules. Text in JSON is also text in YAML.
func show(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	find := ofRunbook
	if filepath.Ext(file) == ".json" {
		find = ofDashboard
	}
	queries, err := find(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Printf("  - name: %s\n    rules:\n", filepath.Base(file))
	for i, query := range queries {
		text, err := json.Marshal(query)
		if err != nil {
			return err
		}
		fmt.Printf("      - {record: \"%s:%d\", expr: %s}\n", notInNames.ReplaceAllString(filepath.Base(file), "_"), i, text)
	}
	return nil
}

var notInNames = regexp.MustCompile(`\W`)

// ofDashboard finds the queries of the panels. Grafana's variables get a value.
func ofDashboard(content []byte) (queries []string, err error) {
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	err = json.Unmarshal(content, &board)
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	return queries, err
}

var asked = regexp.MustCompile(`promq '([^']+)'`)

// ofRunbook finds the queries of its commands.
func ofRunbook(content []byte) (queries []string, err error) {
	for _, match := range asked.FindAllSubmatch(content, -1) {
		queries = append(queries, string(match[1]))
	}
	return queries, nil
}
