package clickhouse

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/template"
)

// Layout is where the table lies.
type Layout struct {
	Database string
	Cluster  string // of replicated tables with a distributed one before them; empty: one server
	Policy   string // of storage; empty: the server's default
	Cold     int    // days after which parts go to the volume "cold" of that policy; 0: never
}

//go:embed schema/*.sql
var files embed.FS

var schemas = template.Must(template.ParseFS(files, "schema/*.sql"))

// Table returns the statements that make the table, which may run again.
func (l Layout) Table() []string { return l.statements("table.sql") }

// Access returns the statements that make users and row policies.
func (l Layout) Access() []string { return l.statements("access.sql") }

func (l Layout) statements(name string) (list []string) {
	var text bytes.Buffer
	if err := schemas.ExecuteTemplate(&text, name, l); err != nil {
		panic(err) // the templates are part of the program
	}
	for statement := range strings.SplitSeq(text.String(), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			list = append(list, statement)
		}
	}
	return list
}

// Local is the table that statements which change rows name.
func (l Layout) Local() string {
	if l.Cluster == "" {
		return l.Database + ".entries"
	}
	return l.Database + ".entries_local ON CLUSTER " + literal(l.Cluster)
}

// Migrate makes the table on one server if the user may; otherwise it says
// what is missing. Nothing of a cluster is made here.
func (s *Store) Migrate(ctx context.Context, logger *slog.Logger) error {
	var failed error
	if s.layout.Cluster == "" {
		for _, statement := range s.layout.Table() {
			if failed = s.writer.exec(ctx, statement, nil, nil); failed != nil {
				break
			}
		}
	}
	if _, err := s.writer.numbers(ctx, everyone, `SELECT count() FROM entries WHERE move < 0`, nil); err != nil {
		if hasCode(err, codeUnknownTable, codeUnknownDatabase) {
			err = errors.New("it has no table of entries: run the statements of `weir history schema` there")
		}
		return fmt.Errorf("cannot use ClickHouse: %w", errors.Join(err, failed))
	}
	seen, err := s.reader.numbers(ctx, nobody, `SELECT count() FROM entries`, nil)
	if err != nil {
		return fmt.Errorf("cannot read from ClickHouse: %w", err)
	}
	if seen[0][0] > 0 {
		logger.Error("ClickHouse has no row policies that keep organizations apart: see `weir history schema`")
	}
	return nil
}
