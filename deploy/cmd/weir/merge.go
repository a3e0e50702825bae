package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/ui"
)

// A regrouper merges groups into one, or takes them out of it.
type regrouper struct {
	Into   string   `arg:"" help:"Id of the group that the others are merged into, or its beginning."`
	Groups []string `arg:"" name:"group" help:"Ids of the others, or their beginnings. Of merged groups, which are not listed, the whole ids."`

	projectReader
}

type errorsMerge struct{ regrouper }

// Run is called by kong.
func (c *errorsMerge) Run(ctx context.Context) error { return c.run(ctx, c.merge) }

type errorsUnmerge struct{ regrouper }

// Run is called by kong.
func (c *errorsUnmerge) Run(ctx context.Context) error { return c.run(ctx, c.unmerge) }

// A regroup does something about the others, and returns the group that remains.
type regroup func(ctx context.Context, api *client.Client, into string, others []string) (client.ErrorGroup, error)

func (c *regrouper) run(ctx context.Context, does regroup) error {
	api, found, err := c.open()
	if err != nil {
		return err
	}
	defer api.Close()
	c.Project = cmp.Or(c.Project, found.Project)
	return c.regroup(ctx, api, terminal.Of(os.Stdout), does)
}

func (c *regrouper) regroup(ctx context.Context, api *client.Client, screen terminal.Screen, does regroup) error {
	ids := make([]string, 0, 1+len(c.Groups))
	for _, named := range append([]string{c.Into}, c.Groups...) {
		id, err := c.whole(ctx, api, named)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	group, err := does(ctx, api, ids[0], ids[1:])
	if err != nil {
		return err
	}
	return writeRegrouped(screen, group)
}

func (c *regrouper) merge(ctx context.Context, api *client.Client, into string, others []string) (group client.ErrorGroup, err error) {
	for _, id := range others {
		if group, err = api.Regroup(ctx, c.APIKey.Reveal(), id, "merge", client.Regrouping{Into: into}); err != nil {
			return group, fmt.Errorf("cannot merge %s: %w", id, err)
		}
	}
	return group, nil
}

func (c *regrouper) unmerge(ctx context.Context, api *client.Client, from string, others []string) (client.ErrorGroup, error) {
	return api.Regroup(ctx, c.APIKey.Reveal(), from, "unmerge", client.Regrouping{Groups: others})
}

type errorsSplit struct {
	Group string `arg:"" help:"Id of the group, or its beginning."`
	Hash  string `arg:"" help:"The hash of one of its samples, as weir errors show has it."`

	projectReader
}

// Run is called by kong.
func (c *errorsSplit) Run(ctx context.Context) error {
	api, found, err := c.open()
	if err != nil {
		return err
	}
	defer api.Close()
	c.Project = cmp.Or(c.Project, found.Project)
	return c.split(ctx, api, terminal.Of(os.Stdout))
}

func (c *errorsSplit) split(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	id, err := c.whole(ctx, api, c.Group)
	if err != nil {
		return err
	}
	group, err := api.Regroup(ctx, c.APIKey.Reveal(), id, "split", client.Regrouping{Hash: c.Hash})
	if err != nil {
		return err
	}
	return writeRegrouped(screen, group)
}

func writeRegrouped(screen terminal.Screen, group client.ErrorGroup) error {
	_, err := fmt.Fprintf(screen, "%s has %s others merged into it, and happened %s times: %s\n",
		group.ID, ui.Count(group.Merged), ui.Count(group.Count), terminal.Line(group.Title))
	return err
}
