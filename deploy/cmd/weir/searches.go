package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
)

const searchesHelp = `Lists the saved searches that everybody sees, by name:

  weir searches                          all
  weir logs --saved='Checkout fails'     the entries of one

Searches are saved, and alerts set on them, on the page Logs of the console.`

type searchesCommand struct {
	Project string `help:"Only those of this project, by its id, and of all projects."`
	Limit   int    `help:"How many at most." default:"100"`
	JSON    bool   `name:"json" help:"Print them as the API has them, one on each line."`

	reader
}

// Help is called by kong.
func (searchesCommand) Help() string { return searchesHelp }

// A savedSearch is a saved search, as the API has it.
type savedSearch struct {
	Name, Project, Query, Last, From, To string
}

// Run is called by kong.
func (s *searchesCommand) Run(ctx context.Context) error {
	api, _, err := s.open()
	if err != nil {
		return err
	}
	defer api.Close()
	return s.print(ctx, api, terminal.Of(os.Stdout))
}

func (s *searchesCommand) print(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	query := url.Values{}
	setAll(query, map[string]string{"project": s.Project})
	found, err := client.Collect(ctx, api, s.caller(), "/searches", query, s.Limit)
	if err != nil {
		return err
	}
	return screen.List(s.JSON, found, "Nothing is saved.", []string{"NAME", "PROJECT", "TIME", "QUERY"}, func(item json.RawMessage) ([]string, error) {
		var search savedSearch
		err := json.Unmarshal(item, &search)
		return []string{search.Name, search.Project, strings.Trim(search.Last+" "+search.From+" "+search.To, " "), search.Query}, err
	})
}

// lasts are the times up to now that a saved search has.
var lasts = map[string]time.Duration{
	"15m": 15 * time.Minute, "1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour,
}

// useSaved takes from a saved search what the command line leaves open.
func (l *logsCommand) useSaved(ctx context.Context, api *client.Client) error {
	found, err := client.Collect(ctx, api, l.caller(), "/searches", url.Values{"name": {l.Saved}}, 2)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%d saved searches are called %q: `weir searches` lists all, --project chooses", len(found), l.Saved)
	}
	var search savedSearch
	if err := json.Unmarshal(found[0], &search); err != nil {
		return err
	}
	if search.Query != "" {
		l.Query = append([]string{"(" + search.Query + ")"}, l.Query...)
	}
	if l.Project == "" {
		l.Project = search.Project
	}
	if last, known := lasts[search.Last]; known {
		l.Since = last
		return nil
	}
	for into, text := range map[*time.Time]string{&l.From: search.From, &l.To: search.To} {
		if at, err := time.Parse(time.RFC3339, text); err == nil && into.IsZero() {
			*into = at
		}
	}
	return nil
}
