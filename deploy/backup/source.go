package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/endpoint"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// A source is a module's schema at one instant: a snapshot held
// for PostgreSQL's programs.
type source struct {
	Module

	name     string
	database httpapi.Secret
	conn     *pgx.Conn
	tx       pgx.Tx
	snapshot string
}

// openSource takes the snapshot, and reads the manifest's data of the
// module in it.
func openSource(ctx context.Context, name, dataDir string) (s *source, err error) {
	s = &source{name: name, Module: Module{Schema: endpoint.Schemas[name].Name}}
	if s.database, err = endpoint.MigratingDatabaseURL(name, dataDir); err != nil {
		return nil, err
	}
	if s.conn, err = connect(ctx, s.database, s.Schema); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// connect opens one connection that uses a schema.
func connect(ctx context.Context, database httpapi.Secret, schema string) (*pgx.Conn, error) {
	pool, err := pg.OpenLater(ctx, database.Reveal(), schema)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the database: %w", err)
	}
	return conn.Hijack(), nil
}

func (s *source) close(ctx context.Context) { _ = s.conn.Close(context.WithoutCancel(ctx)) }

func (s *source) begin(ctx context.Context) (err error) {
	if s.tx, err = s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err != nil {
		return err
	}
	if err := pg.AsSystem(ctx, s.tx); err != nil {
		return err
	}
	if err := s.tx.QueryRow(ctx, `SELECT pg_export_snapshot(), now(), current_setting('server_version')`).Scan(&s.snapshot, &s.At, &s.Server); err != nil {
		return err
	}
	s.At = s.At.UTC()
	if err := s.seesAll(ctx); err != nil {
		return err
	}
	if s.Positions, err = positions(ctx, s.tx); err != nil {
		return fmt.Errorf("cannot read the positions of its consumers: %w", err)
	}
	if s.Privileges, err = privileges(ctx, s.tx); err != nil {
		return fmt.Errorf("cannot read the rights on its tables: %w", err)
	}
	if s.name == "ledger" {
		s.Roots, err = roots(ctx, s.tx)
	}
	return err
}

// seesAll refuses tables whose policies would silently hide rows from the copy.
func (s *source) seesAll(ctx context.Context) error {
	rows, err := s.tx.Query(ctx, `SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relrowsecurity
			AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)
			AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'r') AND pg_get_expr(p.polqual, c.oid) LIKE '%= ''*''::text%')
		ORDER BY 1`)
	if err != nil {
		return err
	}
	hidden, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(hidden) > 0 {
		err = fmt.Errorf("row level security hides rows of %s: no policy of theirs lets a copy see all", strings.Join(hidden, ", "))
	}
	return err
}

func positions(ctx context.Context, tx pgx.Tx) ([]Position, error) {
	rows, err := tx.Query(ctx, `SELECT group_name, topic, partition, next, coalesce(topic_id::text, '') FROM bus_positions ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Position])
}

func roots(ctx context.Context, tx pgx.Tx) (found []Root, err error) {
	days, err := ledger.DailyRoots(ctx, tx)
	for _, day := range days {
		found = append(found, Root{day.Hour.UTC().Truncate(time.Second), hex.EncodeToString(day.Root), day.Organizations})
	}
	return found, err
}

func topicID(id [16]byte) string { return uuid.UUID(id).String() }

// rows counts the rows of each table. A connection whose row level
// security hides some reads fewer without an error: the numbers show it.
func rows(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	found, err := tx.Query(ctx, `SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	counted := make(map[string]int64, len(tables))
	for _, table := range tables {
		var n int64
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()).Scan(&n); err != nil {
			return nil, fmt.Errorf("cannot count the rows of %s: %w", table, err)
		}
		counted[table] = n
	}
	return counted, nil
}

// sameRows names the tables that were not restored with all rows.
func sameRows(back, want map[string]int64) (err error) {
	all := maps.Clone(back)
	maps.Copy(all, want)
	for _, table := range slices.Sorted(maps.Keys(all)) {
		if back[table] != want[table] {
			err = errors.Join(err, fmt.Errorf("%s has %d rows, not the %d of the manifest", table, back[table], want[table]))
		}
	}
	return err
}
