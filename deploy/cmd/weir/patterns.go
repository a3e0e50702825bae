package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

// mostPatterns is how many the API gives.
const mostPatterns = 100

// patterns prints what the messages of entries have in common.
func (l *logsCommand) patterns(ctx context.Context, api *client.Client, screen terminal.Screen, now time.Time) error {
	of := span{From: l.From, To: l.To}
	since := ""
	if l.NewSince > 0 {
		since = now.Add(-l.NewSince).UTC().Format(time.RFC3339Nano)
	} else if of.From.IsZero() {
		of.From = now.Add(-l.Since)
	}
	query := of.query()
	setAll(query, map[string]string{
		"q": strings.Join(l.Query, " "), "project": l.Project, "since": since, "top": strconv.Itoa(min(l.Limit, mostPatterns)),
	})
	raw, err := client.Read[json.RawMessage](ctx, api, l.caller(), "/logs/patterns", query)
	if err != nil {
		return err
	}
	if l.JSON {
		return screen.JSON(raw)
	}
	var found struct {
		Patterns []struct {
			Pattern  string
			Entries  int64
			Share    float64
			Levels   map[string]int64
			LastSeen time.Time `json:"last_seen"`
		}
		Entries    int64
		Incomplete bool
		Compared   *struct {
			Entries    int64
			Incomplete bool
		}
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return fmt.Errorf("cannot read the patterns: %w", err)
	}
	var rows [][]string
	for _, p := range found.Patterns {
		rows = append(rows, []string{ui.Count(p.Entries), fmt.Sprintf("%.1f %%", 100*p.Share), levelsOf(p.Levels), shown(p.LastSeen), p.Pattern})
	}
	if err := screen.Table([]string{"ENTRIES", "SHARE", "LEVELS", "LAST SEEN", "PATTERN"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(screen, "\n%s entries were looked at.\n", ui.Count(found.Entries))
	if found.Incomplete {
		fmt.Fprintln(screen, "These are a part of those that match. Name a shorter time.")
	}
	if before := found.Compared; before != nil {
		fmt.Fprintf(screen, "Compared with %s entries before.\n", ui.Count(before.Entries))
		if before.Incomplete {
			fmt.Fprintln(screen, "These are a part of them: patterns may be older.")
		}
	}
	return nil
}

// levelsOf names levels with their entries, the gravest first.
func levelsOf(levels map[string]int64) string {
	var list []string
	for _, level := range []string{"fatal", "error", "warn", "info", "debug"} {
		if n := levels[level]; n > 0 {
			list = append(list, ui.Count(n)+" "+level)
		}
	}
	return strings.Join(list, ", ")
}
