package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/deploy/apireference"
	"github.com/weirlog/weir/deploy/errorcodes"
	gateway "github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/deploy/settings"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/process"
	tenants "github.com/weirlog/weir/tenants/app/command"
)

// docsCommand writes the pages generated from the source: make docs.
type docsCommand struct {
	Root string `arg:"" help:"Root of the repository."`
}

// Run writes them.
func (d *docsCommand) Run() error {
	pages, err := pages(d.Root)
	if err != nil {
		return err
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(d.Root, "deploy", "docs", name), page, 0o644); err != nil { //nolint:gosec // for everybody to read
			return fmt.Errorf("cannot write a page: %w", err)
		}
	}
	return nil
}

// pages returns the generated pages by file name.
func pages(root string) (map[string][]byte, error) {
	var list, codes, reference bytes.Buffer
	err := settings.Write(&list, []settings.Program{
		{Name: "weir", Config: new(commands)},
		{Name: "gateway", Config: process.Options[gateway.Config]()},
		{Name: "ingest", Config: process.Options[ingest.Config]()},
		{Name: "ledger", Config: process.Options[ledger.Config]()},
		{Name: "grouping", Config: process.Options[grouping.Config]()},
		{Name: "tenants", Config: process.Options[tenants.Commands]()},
	})
	if err != nil {
		return nil, err
	}
	answers, err := errorcodes.Scan(root)
	if err != nil {
		return nil, err
	}
	if err := errorcodes.Write(&codes, answers); err != nil {
		return nil, err
	}
	operations, err := apireference.Operations()
	if err != nil {
		return nil, err
	}
	err = apireference.Write(&reference, operations)
	return map[string][]byte{"settings.md": list.Bytes(), "errors.md": codes.Bytes(), "api.md": reference.Bytes()}, err
}
