package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
)

const rejectedHelp = `Lists what was rejected in the last 24 hours, by API key and code:

  weir rejected                                        all of a project
  weir rejected --code=invalid_timestamp --json | jq   with samples`

type rejectedCommand struct {
	Key   string `help:"Only those of this API key, by its id."`
	Code  string `help:"Only those of this code."`
	Limit int    `help:"How many lines at most." default:"100"`
	JSON  bool   `name:"json" help:"Print them as the API has them, one on each line."`

	projectReader
}

// Help is called by kong.
func (rejectedCommand) Help() string { return rejectedHelp }

// Run is called by kong.
func (r *rejectedCommand) Run(ctx context.Context) error {
	api, err := r.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return r.print(ctx, api, terminal.Of(os.Stdout))
}

func (r *rejectedCommand) print(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	query := url.Values{}
	setAll(query, map[string]string{"key": r.Key, "code": r.Code})
	found, err := client.Collect(ctx, api, r.caller(), "/projects/"+url.PathEscape(r.Project)+"/rejected-entries", query, r.Limit)
	if err != nil {
		return err
	}
	heads := []string{"ENTRIES", "CODE", "KEY", "LAST", "EXAMPLE"}
	return screen.List(r.JSON, found, "Nothing was rejected.", heads, func(item json.RawMessage) ([]string, error) {
		var rejected struct {
			Key, Code string
			Entries   int64
			LastAt    time.Time `json:"last_at"`
			Samples   []struct{ Pointer, Detail, Fix string }
		}
		err := json.Unmarshal(item, &rejected)
		example := ""
		if len(rejected.Samples) > 0 {
			example = rejected.Samples[0].Pointer + " " + rejected.Samples[0].Detail + " " + rejected.Samples[0].Fix
		}
		return []string{strconv.FormatInt(rejected.Entries, 10), rejected.Code, rejected.Key, shown(rejected.LastAt), example}, err
	})
}
