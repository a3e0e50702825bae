package main

import (
	"cmp"
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weirlog/weir/deploy/mcpserver"
)

type mcpCommand struct {
	projectReader
	billing
}

// Help is called by kong.
func (mcpCommand) Help() string {
	return `An assistant starts it, and may then read what the key of the profile may read; it can change nothing. Its configuration is such as

  {"mcpServers": {"weir": {"command": "weir", "args": ["mcp", "--profile=prod"]}}}

Entries come from outside: an assistant that reads them should not be allowed to act without you.`
}

// Run serves until the assistant leaves.
func (m *mcpCommand) Run(ctx context.Context) error {
	api, as, err := m.open()
	if err != nil {
		return err
	}
	defer api.Close()
	m.complete(as)
	as.APIKey, as.Project, as.ServiceToken, as.Organization = m.APIKey, cmp.Or(m.Project, as.Project), m.ServiceToken, m.Organization
	err = mcpserver.New(api, as, time.Now).Run(ctx, &mcp.StdioTransport{})
	if ctx.Err() != nil { // stopped by a signal
		return nil
	}
	return err
}
