package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/profile"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
)

const usageHelp = `Shows what was used, the latest first, and what is left of the period:

  weir usage                                by day and project
  weir usage --by=key --bucket=month        by API key and month
  weir usage --by=outcome,reason            refused requests, too
  weir usage --json | jq .balance.remaining exact bytes

It takes a service token with billing:read.`

type usageCommand struct {
	By      string `help:"What it is split by, beside time: any of project, key, environment, outcome and reason, with commas between." default:"project"`
	Bucket  string `help:"By hour, day or month." default:"day" enum:"hour,day,month"`
	Project string `help:"Only this project, by its id."`
	span
	Limit int  `help:"How many rows at most." default:"100"`
	JSON  bool `name:"json" help:"Print one object: the balance, and the rows as items."`

	connection
	billing
}

// A billing is as whom usage is read.
type billing struct {
	ServiceToken httpapi.Secret `help:"A service token with billing:read." env:"WEIR_SERVICE_TOKEN"`
	Organization string         `help:"Id of the organization." env:"WEIR_ORGANIZATION"`
}

// complete takes from a profile what is not named.
func (b *billing) complete(from profile.Profile) {
	b.ServiceToken, b.Organization = cmp.Or(b.ServiceToken, from.ServiceToken), cmp.Or(b.Organization, from.Organization)
}

// Help is called by kong.
func (usageCommand) Help() string { return usageHelp }

// Validate is called by kong.
func (u *usageCommand) Validate() error {
	if u.Limit < 1 {
		return errors.New("--limit must be more than 0")
	}
	return nil
}

// Run is called by kong.
func (u *usageCommand) Run(ctx context.Context) error {
	found, err := u.reach()
	if err != nil {
		return err
	}
	u.complete(found)
	switch {
	case u.ServiceToken == "":
		return missing("a service token with billing:read", "WEIR_SERVICE_TOKEN")
	case u.Organization == "":
		return missing("the organization's id", "WEIR_ORGANIZATION")
	}
	api, err := client.New(found.BaseURL, found.CAFile, 1)
	if err != nil {
		return err
	}
	defer api.Close()
	return u.print(ctx, api, terminal.Of(os.Stdout))
}

func (u *usageCommand) print(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	query := u.query()
	setAll(query, map[string]string{"by": u.By, "bucket": u.Bucket, "project": u.Project})
	caller, organization := client.ByToken(u.ServiceToken.Reveal()), "/organizations/"+url.PathEscape(u.Organization)
	balance, err := client.Read[json.RawMessage](ctx, api, caller, organization+"/balance", nil)
	if err != nil {
		return err
	}
	items, err := client.Collect(ctx, api, caller, organization+"/usage", query, u.Limit)
	if err != nil {
		return err
	}
	if u.JSON {
		whole, err := json.Marshal(map[string]any{"balance": balance, "items": append([]json.RawMessage{}, items...)})
		return errors.Join(err, screen.JSON(whole))
	}
	return u.table(screen, balance, items)
}

func (u *usageCommand) table(screen terminal.Screen, balance json.RawMessage, items []json.RawMessage) error {
	layout := map[string]string{"hour": "2006-01-02 15:00", "day": time.DateOnly, "month": "2006-01"}[u.Bucket]
	by := strings.FieldsFunc(u.By, func(r rune) bool { return r == ',' })
	head := append([]string{"UTC", "REQUESTS", "ENTRIES", "BYTES"}, strings.Fields(strings.ToUpper(strings.Join(by, " ")))...)
	err := screen.List(false, items, "Nothing was used.", head, func(item json.RawMessage) ([]string, error) {
		var row struct {
			At                       time.Time
			Requests, Entries, Bytes int64
		}
		parts := map[string]any{} // bounded by the members of an item
		err := errors.Join(json.Unmarshal(item, &row), json.Unmarshal(item, &parts))
		cells := []string{row.At.UTC().Format(layout), ui.Count(row.Requests), ui.Count(row.Entries), ui.Bytes(row.Bytes)}
		for _, name := range by {
			cells = append(cells, fmt.Sprint(parts[name]))
		}
		return cells, err
	})
	var left client.Balance
	if err := errors.Join(err, json.Unmarshal(balance, &left)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(screen, "\n%s to %s: %s of %s used, %s left.\n", left.Period.Start.UTC().Format(time.DateOnly),
		left.Period.End.UTC().Format(time.DateOnly), ui.Bytes(left.Accepted()), ui.Bytes(left.Granted), ui.Bytes(left.Remaining))
	return err
}
