package main

import (
	"time"

	"github.com/weirlog/weir/deploy/provision"
)

type provisionCommand struct {
	Dir      string   `arg:"" help:"Directory of the secrets."`
	Hosts    []string `help:"Names and addresses that the certificate is for, beside localhost." default:"gateway,ingest,ledger,grouping,tenants"`
	Postgres string   `help:"Host of the PostgreSQL server, and its port where it is not 5432." default:"postgres"`
}

// Help is called by kong.
func (provisionCommand) Help() string {
	return `Makes a file for each secret of an installation: certificates of an authority of its own, tokens, keys, passwords, and the script of
the databases. What is there stays. To replace a secret, change or remove its file, and make up again.

  weir provision secrets --postgres db.example       then psql --file=secrets/roles.sql makes roles and databases`
}

// Run creates what is missing.
func (p *provisionCommand) Run() error {
	return provision.Ensure(p.Dir, p.Postgres, time.Now(), p.Hosts...)
}
