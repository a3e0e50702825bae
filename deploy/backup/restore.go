package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/endpoint"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// RestoreConfig says what is restored, and where.
type RestoreConfig struct {
	From    string   `arg:"" help:"Folder of the backup, or directory of backups: then the newest."`
	Modules []string `arg:"" optional:"" name:"module" help:"Modules to restore: ingest, ledger, grouping, tenants. Without one: all." enum:"ingest,ledger,grouping,tenants"`

	Check     bool              `help:"Only look whether the backup is whole, every file as it was written."`
	Deletions erasure.Retention `embed:""`
	Jobs      int               `help:"How many tables and indexes are made at a time; each takes a connection to the database." default:"2"`

	DataDir     string `help:"Data directory of a weir run; where a database is not set, that of this directory is used." env:"WEIR_DATA_DIR" default:".weir"`
	PostgresBin string `name:"postgres-bin" help:"Folder of pg_restore. Without it, the one on PATH or where distributions put it." env:"WEIR_POSTGRES_BIN"`
}

// Republishers make a module publish its state again: topics are newer
// than an older database, or have nothing at all.
var Republishers = map[string]func(context.Context, pgx.Tx) error{"ledger": ledger.Republish, "tenants": tenants.Republish}

// Restore restores modules into databases without their schemas, and
// returns the backup's manifest. It compares every file with its digest
// before it changes anything.
func Restore(ctx context.Context, config RestoreConfig, out io.Writer) (m Manifest, err error) {
	dir, m, err := find(config.From)
	if err != nil {
		return m, err
	}
	size, err := m.Check(dir)
	if err != nil {
		return m, fmt.Errorf("the backup in %s is damaged, take another one: %w", dir, err)
	}
	fmt.Fprintf(out, "whole     %s of %s, %d bytes, made by Weir %s\n", dir, m.At.Format(time.RFC3339), size, m.Version)
	fmt.Fprint(out, config.warnOf(m, time.Now()))
	if config.Check {
		return m, nil
	}
	r := &restoration{RestoreConfig: config, dir: dir, out: out, manifest: m}
	if r.program, err = tool(config.PostgresBin, "pg_restore"); err != nil {
		return m, err
	}
	names := config.chosen()
	for _, name := range names { // all before the first is changed
		if err := r.isEmpty(ctx, name); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range names {
		if err := r.restoreModule(ctx, name); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
	}
	return m, nil
}

// warnOf warns of a backup older than the oldest remembered deletion:
// earlier deletions would not be erased again.
func (c RestoreConfig) warnOf(m Manifest, now time.Time) string {
	if now.AddDate(0, -c.Deletions.Months(), 0).Before(m.At) {
		return ""
	}
	return fmt.Sprintf("warning   it is older than %d months (WEIR_DELETIONS_MONTHS): what was deleted longer ago than that comes back\n", c.Deletions.Months())
}

func (c RestoreConfig) chosen() []string {
	if len(c.Modules) == 0 {
		return endpoint.Modules
	}
	return c.Modules
}

// find returns the backup in a folder, or the newest of a directory.
func find(from string) (dir string, m Manifest, err error) {
	if folders, err := List(from); err == nil && len(folders) > 0 {
		from = folders[len(folders)-1]
	}
	m, err = Open(from)
	return from, m, err
}

// A restoration is one run of Restore.
type restoration struct {
	RestoreConfig

	dir      string
	out      io.Writer
	program  string
	manifest Manifest
}

// open connects to a module's database, and returns its address too.
func (r *restoration) open(ctx context.Context, name string) (conn *pgx.Conn, database httpapi.Secret, err error) {
	if database, err = endpoint.MigratingDatabaseURL(name, r.DataDir); err != nil {
		return nil, "", err
	}
	conn, err = connect(ctx, database, r.manifest.Modules[name].Schema)
	return conn, database, err
}

// isEmpty refuses a schema with anything in it.
func (r *restoration) isEmpty(ctx context.Context, name string) error {
	module, kept := r.manifest.Modules[name]
	if !kept {
		return errors.New("the backup does not have it")
	}
	conn, _, err := r.open(ctx, name)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return advised(pg.RequireEmpty(ctx, tx, module.Schema), conn, module.Schema) })
}

// advised adds a remedy to an error that a schema is not empty.
func advised(err error, conn *pgx.Conn, schema string) error {
	if !errors.Is(err, pg.ErrNotEmpty) {
		return err
	}
	return fmt.Errorf("%w: nothing of %q in %s is overwritten: "+
		"stop the services, rename it (ALTER SCHEMA %s RENAME TO %s_before) or drop it, or name another database",
		err, schema, conn.Config().Database, schema, schema)
}

// restoreModule restores one module. If it fails it leaves nothing behind,
// so that it can be repeated.
func (r *restoration) restoreModule(ctx context.Context, name string) error {
	module, begun := r.manifest.Modules[name], time.Now()
	conn, database, err := r.open(ctx, name)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	claim := unfinished + begun.UTC().Format(time.RFC3339Nano)
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return pg.Claim(ctx, tx, module.Schema, claim) }); err != nil {
		return advised(err, conn, module.Schema)
	}
	fmt.Fprintf(r.out, "%-9s as of %s ...", name, module.At.Format(time.RFC3339))
	if err := r.fill(ctx, conn, database, name); err != nil {
		fmt.Fprintln(r.out)
		ctx := context.WithoutCancel(ctx)
		return errors.Join(err, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return pg.Abandon(ctx, tx, module.Schema, claim) }))
	}
	fmt.Fprintf(r.out, " back in %s\n", time.Since(begun).Round(time.Millisecond))
	return nil
}

// Comments on a restored schema: services refuse an unfinished one, the
// doctor shows when it was.
const (
	unfinished = pg.Unfinished + ", begun at "
	Restored   = "restored from the backup of "
)

func (r *restoration) fill(ctx context.Context, conn *pgx.Conn, database httpapi.Secret, name string) error {
	module := r.manifest.Modules[name]
	if err := r.load(ctx, database, name); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		if err := isWhole(ctx, tx, name, module); err != nil {
			return err
		}
		if err := restorePrivileges(ctx, tx, module.Privileges); err != nil {
			return err
		}
		if err := relay.ReleaseLeases(ctx, tx); err != nil {
			return err
		}
		if republish := Republishers[name]; republish != nil {
			if err := republish(ctx, tx); err != nil {
				return err
			}
		}
		return pg.Comment(ctx, tx, module.Schema, Restored+module.At.Format(time.RFC3339)+", at "+time.Now().UTC().Format(time.RFC3339))
	})
}

// load makes pg_restore restore the dump.
func (r *restoration) load(ctx context.Context, database httpapi.Secret, name string) error {
	folder, err := os.MkdirTemp("", "weir-restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	dump := filepath.Join(r.dir, name)
	lists, err := passes(ctx, r.program, dump, folder)
	if err != nil {
		return err
	}
	for _, list := range lists {
		if err := run(ctx, r.program, database, "--format=directory", "--schema="+r.manifest.Modules[name].Schema, "--no-owner", "--no-privileges",
			"--enable-row-security", "--exit-on-error", "--use-list="+list, "--jobs="+strconv.Itoa(max(1, r.Jobs)), dump); err != nil {
			return err
		}
	}
	return nil
}

// isWhole compares the restored schema with the manifest: how many rows
// each table has, positions, and the roots of the ledger's chains.
func isWhole(ctx context.Context, tx pgx.Tx, name string, want Module) error {
	counted, err := rows(ctx, tx)
	if err != nil {
		return err
	}
	if err := sameRows(counted, want.Rows); err != nil {
		return err
	}
	found, err := positions(ctx, tx)
	if err != nil {
		return err
	}
	if !slices.Equal(found, want.Positions) {
		return fmt.Errorf("its positions are not those of the manifest: %d and %d", len(found), len(want.Positions))
	}
	if name != "ledger" {
		return nil
	}
	back, err := roots(ctx, tx)
	if err == nil && !slices.Equal(back, want.Roots) {
		err = errors.New("the roots of its chains are not those of the manifest")
	}
	return err
}
