package pg

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Schema is the schema of a module's tables, with the migrations
// that create them.
type Schema struct {
	Name       string
	Migrations []MigrationSet
}

// A MigrationSet is one module's migrations: the files migrations/*.sql
// of FS and of each folder in it, applied once each, in the order of
// their names whatever the folder. A released file is never edited; it
// may move to another folder.
type MigrationSet struct {
	Name   string // "bus", "ledger"
	FS     fs.FS
	Rights Rights // to its tables
}

// Files lists the paths of the migrations by name. Names are unique:
// applied ones are stored by name.
func (s MigrationSet) Files() ([]string, error) {
	files, err := fs.Glob(s.FS, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	inFolders, err := fs.Glob(s.FS, "*/migrations/*.sql")
	if err != nil {
		return nil, err
	}
	files = append(files, inFolders...)
	slices.SortStableFunc(files, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	for i := 1; i < len(files); i++ {
		if path.Base(files[i-1]) == path.Base(files[i]) {
			return nil, fmt.Errorf("migration set %q has both %s and %s: their names must differ", s.Name, files[i-1], files[i])
		}
	}
	return files, nil
}

// Migrate creates a missing schema and applies missing migrations, each
// file in its own transaction: its locks are free while the next one
// runs, and it stays applied if a later one fails. A file that can't
// get its locks within seconds is retried for minutes. Several
// processes may call it at once: one applies a file, the others wait
// and then find it applied. It refuses a login role that bypasses row
// level security. A role that neither owns the schema nor can create it
// changes nothing, and gets ErrNotMigrated if a migration is missing.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string, sets ...MigrationSet) error {
	if err := refuseBypass(ctx, pool); err != nil {
		return err
	}
	able, err := canMigrate(ctx, pool, schema)
	if err != nil {
		return err
	}
	if !able {
		return refuseUnready(ctx, pool, schema, sets)
	}
	if err := InTx(ctx, pool, func(tx pgx.Tx) error { return prepare(ctx, tx, schema) }); err != nil {
		return fmt.Errorf("cannot prepare schema %q: %w", schema, err)
	}
	for _, set := range sets {
		if err := set.apply(ctx, pool, schema); err != nil {
			return fmt.Errorf("cannot migrate schema %q: %w", schema, err)
		}
	}
	return nil
}

// OpenMigrated is Open and then Migrate; if that fails, nothing stays open.
func OpenMigrated(ctx context.Context, url, schema string, sets ...MigrationSet) (*pgxpool.Pool, error) {
	pool, err := Open(ctx, url, schema)
	if err != nil {
		return nil, err
	}
	if err := Migrate(ctx, pool, schema, sets...); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// ErrNotMigrated means that a schema lacks migrations.
var ErrNotMigrated = errors.New("the database is not up to date")

// OpenCurrent is Open for users of a service's schema: it changes
// nothing, and fails with ErrNotMigrated if a migration is missing.
func OpenCurrent(ctx context.Context, url, schema string, sets ...MigrationSet) (*pgxpool.Pool, error) {
	pool, err := Open(ctx, url, schema)
	if err != nil {
		return nil, err
	}
	if err := refuseOutdated(ctx, pool, schema, sets); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// canMigrate reports whether the role owns the schema or, if there is
// none, can create it.
func canMigrate(ctx context.Context, pool *pgxpool.Pool, schema string) (able bool, err error) {
	err = pool.QueryRow(ctx, `SELECT coalesce((SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = $1),
		has_database_privilege(current_database(), 'CREATE'))`, schema).Scan(&able)
	if err != nil {
		return false, fmt.Errorf("cannot read who owns schema %q: %w", schema, err)
	}
	return able, nil
}

// refuseUnready is for a role that can't migrate the schema.
func refuseUnready(ctx context.Context, pool *pgxpool.Pool, schema string, sets []MigrationSet) error {
	if err := InTx(ctx, pool, func(tx pgx.Tx) error { return refuseUnfinished(ctx, tx, schema) }); err != nil {
		return fmt.Errorf("cannot use schema %q: %w", schema, err)
	}
	return refuseOutdated(ctx, pool, schema, sets)
}

// refuseOutdated fails with ErrNotMigrated if a migration is missing.
func refuseOutdated(ctx context.Context, pool *pgxpool.Pool, schema string, sets []MigrationSet) error {
	missing, _, err := Migrated(ctx, pool, sets...)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: schema %q lacks %s (weir migrate adds them, as the role that owns the schema)", ErrNotMigrated, schema, strings.Join(missing, ", "))
	}
	return err
}

// Migrated lists the migrations not applied, and those applied but
// unknown here, by a newer version.
func Migrated(ctx context.Context, pool *pgxpool.Pool, sets ...MigrationSet) (missing, unknown []string, err error) {
	err = pool.QueryRow(ctx, `SELECT array_agg(set_name || '/' || file ORDER BY set_name, file) FROM migrations`).Scan(&unknown)
	if err != nil && code(err) != undefinedTable {
		return nil, nil, fmt.Errorf("cannot read which migrations are applied: %w", err)
	}
	for _, set := range sets {
		files, err := set.Files()
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			name := set.Name + "/" + path.Base(file)
			at := slices.Index(unknown, name)
			if at < 0 {
				missing = append(missing, name)
				continue
			}
			unknown = slices.Delete(unknown, at, at+1)
		}
	}
	return missing, unknown, nil
}

const undefinedTable = "42P01"

// prepare creates the schema with its table of applied migrations.
func prepare(ctx context.Context, tx pgx.Tx, schema string) error {
	if err := lock(ctx, tx, schema); err != nil {
		return err
	}
	name := pgx.Identifier{schema}.Sanitize()
	if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+name); err != nil {
		return err
	}
	if err := refuseUnfinished(ctx, tx, schema); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+name+`.migrations (
		set_name   text NOT NULL,
		file       text NOT NULL,
		applied_at timestamptz NOT NULL DEFAULT now(),
		PRIMARY KEY (set_name, file))`)
	return err
}

// lock blocks other migrations of the schema until the transaction ends.
func lock(ctx context.Context, tx pgx.Tx, schema string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir migrate ' || $1, 0))`, schema)
	return err
}

func (s MigrationSet) apply(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	files, err := s.Files()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("migration set %q has no migrations/*.sql", s.Name)
	}
	var applied []string
	if err := pool.QueryRow(ctx, `SELECT array_agg(file) FROM migrations WHERE set_name = $1`, s.Name).Scan(&applied); err != nil {
		return err
	}
	for _, file := range files {
		if slices.Contains(applied, path.Base(file)) {
			continue
		}
		if err := s.applyFile(ctx, pool, schema, file); err != nil {
			return fmt.Errorf("%s/%s: %w", s.Name, path.Base(file), err)
		}
	}
	return nil
}

// applyFile does nothing if another process has just applied the file.
func (s MigrationSet) applyFile(ctx context.Context, pool *pgxpool.Pool, schema, file string) error {
	statements, err := fs.ReadFile(s.FS, file)
	if err != nil {
		return err
	}
	return withoutQueue(ctx, pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, waitForTables); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO migrations (set_name, file) VALUES ($1, $2) ON CONFLICT DO NOTHING`, s.Name, path.Base(file))
		if err == nil && tag.RowsAffected() > 0 {
			_, err = tx.Exec(ctx, string(statements))
		}
		return err
	})
}

// Unfinished begins the comment on a schema whose restore has not
// ended: it holds only a part.
const Unfinished = "restore unfinished"

// ErrNotEmpty means that a schema has objects.
var ErrNotEmpty = errors.New("the schema is not empty")

// Claim reserves an empty schema for one restore, whose comment begins
// with Unfinished: from then on nobody else migrates or claims it.
// After an error the schema is not the caller's.
func Claim(ctx context.Context, tx pgx.Tx, schema, comment string) error {
	if err := lock(ctx, tx, schema); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{schema}.Sanitize()); err != nil {
		return err
	}
	if err := refuseUnfinished(ctx, tx, schema); err != nil {
		return err
	}
	if err := RequireEmpty(ctx, tx, schema); err != nil {
		return err
	}
	return Comment(ctx, tx, schema, comment)
}

// RequireEmpty fails with ErrNotEmpty on a schema that has a table,
// type or function. A missing one is empty.
func RequireEmpty(ctx context.Context, tx pgx.Tx, schema string) error {
	var filled bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace n WHERE nspname = $1 AND (EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid)
		OR EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid) OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid)))`, schema).Scan(&filled)
	if err == nil && filled {
		err = ErrNotEmpty
	}
	return err
}

// Comment replaces the comment on a schema.
func Comment(ctx context.Context, tx pgx.Tx, schema, text string) error {
	_, err := tx.Exec(ctx, `COMMENT ON SCHEMA `+pgx.Identifier{schema}.Sanitize()+` IS '`+strings.ReplaceAll(text, "'", "''")+`'`)
	return err
}

// Abandon drops a schema that still has the comment given by Claim.
func Abandon(ctx context.Context, tx pgx.Tx, schema, comment string) error {
	if err := lock(ctx, tx, schema); err != nil {
		return err
	}
	found, err := commentOf(ctx, tx, schema)
	if err != nil {
		return err
	}
	if found != comment {
		return fmt.Errorf("the schema %q is another one now, and stays as it is", schema)
	}
	_, err = tx.Exec(ctx, `DROP SCHEMA `+pgx.Identifier{schema}.Sanitize()+` CASCADE`)
	return err
}

func commentOf(ctx context.Context, tx pgx.Tx, schema string) (comment string, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(max(obj_description(oid, 'pg_namespace')), '') FROM pg_namespace WHERE nspname = $1`, schema).Scan(&comment)
	return comment, err
}

// refuseUnfinished fails on a schema of which only a part was restored.
func refuseUnfinished(ctx context.Context, tx pgx.Tx, schema string) error {
	comment, err := commentOf(ctx, tx, schema)
	if err != nil {
		return err
	}
	if strings.HasPrefix(comment, Unfinished) {
		return fmt.Errorf("it is but a part of a backup (%s): drop it (DROP SCHEMA %s CASCADE) and restore it again", comment, pgx.Identifier{schema}.Sanitize())
	}
	return nil
}

// Remedy returns one sentence about what to do when a server
// refuses a connection.
func Remedy(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return remedyOf(refused.Code)
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var other x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return "Name the authority of the server's certificate by sslrootcert in WEIR_DATABASE_URL: it is read for each connection."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "Replace the server's certificate, which is out of date (pg_ctl reload takes another): services go on by themselves."
	case errors.As(err, &other):
		return "Reach the server in WEIR_DATABASE_URL by a name that its certificate has, or have one issued for this name."
	case strings.Contains(err.Error(), "server refused TLS"):
		return "Turn ssl on at the server: sslmode in WEIR_DATABASE_URL demands it."
	}
	return "Start PostgreSQL, and check host and port in WEIR_DATABASE_URL, name resolution and firewalls between."
}

func remedyOf(code string) string {
	switch code {
	case "28P01", "28000":
		return "Correct the user or the password in WEIR_DATABASE_URL or its passfile, or let pg_hba.conf admit them; ALTER ROLE … PASSWORD sets another one."
	case "3D000":
		return "Correct the database's name in WEIR_DATABASE_URL, or make the database (CREATE DATABASE … OWNER …)."
	case "42501":
		return "Grant the role the right to connect (GRANT CONNECT ON DATABASE … TO …)."
	case "53300":
		return "Raise max_connections, or run fewer processes."
	}
	return "Look at the server's log."
}
