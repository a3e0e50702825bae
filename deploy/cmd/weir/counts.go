package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

// count prints how many of the entries have which values.
func (l *logsCommand) count(ctx context.Context, api *client.Client, screen terminal.Screen, from time.Time) error {
	query := span{From: from, To: l.To}.query()
	query["by"] = l.CountBy
	setAll(query, map[string]string{"q": strings.Join(l.Query, " "), "project": l.Project})
	raw, err := client.Read[json.RawMessage](ctx, api, l.caller(), "/logs/stats", query)
	if err != nil {
		return err
	}
	if l.JSON {
		return screen.JSON(raw)
	}
	var counted struct {
		Entries int64
		Fields  []struct {
			Field  string
			Values []struct {
				Value   string
				Entries int64
			}
			Without int64
		}
		ExactAfter *time.Time `json:"exact_after"`
	}
	if err := json.Unmarshal(raw, &counted); err != nil {
		return fmt.Errorf("cannot read the counts: %w", err)
	}
	for _, field := range counted.Fields {
		var rows [][]string
		for _, value := range field.Values {
			rows = append(rows, []string{ui.Count(value.Entries), value.Value})
		}
		if field.Without > 0 {
			rows = append(rows, []string{ui.Count(field.Without), "(none)"})
		}
		if err := screen.Table([]string{"ENTRIES", field.Field}, rows); err != nil {
			return err
		}
		fmt.Fprintln(screen)
	}
	fmt.Fprintf(screen, "%s entries match.\n", ui.Count(counted.Entries))
	if counted.ExactAfter != nil {
		fmt.Fprintf(screen, "The count is incomplete: it is exact after %s. Name a shorter time.\n", shown(*counted.ExactAfter))
	}
	return nil
}
