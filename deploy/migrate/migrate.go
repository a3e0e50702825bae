package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// Config names the schemas. Their addresses come only from the
// environment, since they hold passwords.
type Config struct {
	Modules []string `arg:"" optional:"" name:"module" help:"Modules to migrate: ingest, ledger, grouping, tenants. Without one: all." enum:"ingest,ledger,grouping,tenants"`

	DataDir string `help:"Data directory of a weir run; where a database is not set, that of this directory is used." env:"WEIR_DATA_DIR" default:".weir"`
}

// Run migrates the schemas in turn, and writes a line for each to out.
func Run(ctx context.Context, config Config, out io.Writer) error {
	names := config.Modules
	if len(names) == 0 {
		names = endpoint.Modules
	}
	for _, name := range names {
		if err := config.module(ctx, name, out); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (c Config) module(ctx context.Context, name string, out io.Writer) error {
	migrating, err := endpoint.MigratingDatabaseURL(name, c.DataDir)
	if err != nil {
		return err
	}
	serving, err := endpoint.DatabaseURL(name, c.DataDir)
	if err != nil {
		return err
	}
	owner, server, err := roles(migrating, serving)
	if err != nil {
		return err
	}
	schema := endpoint.Schemas[name]
	pool, err := pg.OpenMigrated(ctx, migrating.Reveal(), schema.Name, schema.Migrations...)
	if err != nil {
		return err
	}
	defer pool.Close()
	return grant(ctx, pool, schema, owner, server, out)
}

// grant leaves a role that does both unchanged.
func grant(ctx context.Context, pool *pgxpool.Pool, schema pg.Schema, owner, server string, out io.Writer) error {
	if owner == server {
		fmt.Fprintf(out, "%-9s up to date; %s owns it and serves\n", schema.Name, owner)
		return nil
	}
	if err := pg.Grant(ctx, pool, schema, server); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-9s up to date; %s owns it, %s serves\n", schema.Name, owner, server)
	return nil
}

// roles returns the users of two addresses, which must name one database.
func roles(migrating, serving httpapi.Secret) (owner, server string, err error) {
	m, failedM := pgx.ParseConfig(migrating.Reveal())
	s, failedS := pgx.ParseConfig(serving.Reveal())
	if failedM != nil || failedS != nil {
		return "", "", errors.New("cannot read the address of a database, or a file that it names")
	}
	if m.Database != s.Database || m.Host != s.Host || m.Port != s.Port {
		return "", "", fmt.Errorf("the role that migrates is of database %q at %s:%d, and the one that serves of %q at %s:%d: name one database",
			m.Database, m.Host, m.Port, s.Database, s.Host, s.Port)
	}
	return m.User, s.User, nil
}
