package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

// A decider decides about groups.
type decider struct {
	Groups []string `arg:"" name:"group" help:"Ids of groups, or their beginnings."`
	Note   string   `help:"Why, for others to read."`

	projectReader
}

type errorsResolve struct {
	InRelease string `name:"in" help:"The release from which on it is mended: a name, current (the newest known) or next. Otherwise it is mended everywhere."`

	decider
}

// Run is called by kong.
func (c *errorsResolve) Run(ctx context.Context) error {
	return c.run(ctx, client.GroupDecision{Status: "resolved", InRelease: c.InRelease})
}

type errorsIgnore struct {
	For   time.Duration `help:"How long, such as 48h. 0: for ever." default:"0"`
	Count int64         `help:"Until it happens so many times." default:"0"`
	Users int64         `help:"Until it has affected so many users." default:"0"`
	Per   string        `help:"Count only what happens within this span." enum:",minute,hour,day,week" default:""`

	decider
}

// Run is called by kong.
func (c *errorsIgnore) Run(ctx context.Context) error {
	return c.run(ctx, c.decision(time.Now()))
}

func (c *errorsIgnore) decision(now time.Time) client.GroupDecision {
	decision := client.GroupDecision{Status: "ignored"}
	if c.For != 0 || c.Count != 0 || c.Users != 0 || c.Per != "" {
		decision.Until = &client.IgnoredUntil{Count: c.Count, Users: c.Users, Per: c.Per}
	}
	if c.For != 0 {
		at := now.Add(c.For).UTC().Truncate(time.Second)
		decision.Until.At = &at
	}
	return decision
}

type errorsReopen struct{ decider }

// Run is called by kong.
func (c *errorsReopen) Run(ctx context.Context) error {
	return c.run(ctx, client.GroupDecision{Status: "unresolved"})
}

type errorsAssign struct {
	To string `required:"" help:"Id of a member, or a label such as that of a team; empty: nobody."`

	decider
}

// Run is called by kong.
func (c *errorsAssign) Run(ctx context.Context) error {
	return c.run(ctx, client.GroupDecision{Assignee: &c.To})
}

func (d *decider) run(ctx context.Context, decision client.GroupDecision) error {
	api, found, err := d.open()
	if err != nil {
		return err
	}
	defer api.Close()
	d.Project = cmp.Or(d.Project, found.Project)
	return d.decide(ctx, api, terminal.Of(os.Stdout), decision)
}

// decide finds all groups before it decides about any.
func (d *decider) decide(ctx context.Context, api *client.Client, screen terminal.Screen, decision client.GroupDecision) error {
	decision.Note = d.Note
	ids := make([]string, len(d.Groups))
	for i, named := range d.Groups {
		var err error
		if ids[i], err = d.whole(ctx, api, named); err != nil {
			return err
		}
	}
	for _, id := range ids {
		group, err := api.DecideGroup(ctx, d.APIKey.Reveal(), id, decision)
		if err != nil {
			return err
		}
		fmt.Fprintf(screen, "%s is %s, and happened %s times: %s\n", group.ID, group.Status, ui.Count(group.Count), terminal.Line(group.Title))
	}
	return nil
}
