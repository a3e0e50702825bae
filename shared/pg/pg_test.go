package pg_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

const schema = "pgtest"

// notes is a typical table of a module: the organization first, row
// level security forced, partitioned by day.
var notes = pg.MigrationSet{Name: "notes", FS: fstest.MapFS{
	"migrations/0001_notes.sql": {Data: []byte(`
		CREATE TABLE notes (organization text NOT NULL, day date NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY, text text NOT NULL,
			PRIMARY KEY (organization, day, id)) PARTITION BY RANGE (day);
		CREATE INDEX notes_text ON notes (text);
		ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
		ALTER TABLE notes FORCE ROW LEVEL SECURITY;
		CREATE POLICY organization ON notes USING (organization = current_setting('weir.organization', true)
			OR current_setting('weir.organization', true) = '*');`)},
}, Rights: pg.Rights{"notes": "SELECT, INSERT"}}

var day = time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), postgrestest.URL(t), schema)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	testenv.Must(t, pg.Migrate(t.Context(), pool, schema, pg.Partitions(), notes))
	return pool
}

// Readers have their own connections: however many wait, a writer gets
// one. They can't write, and their statements have a timeout.
func TestReadersHaveConnectionsOfTheirOwn(t *testing.T) {
	url := postgrestest.URL(t)
	writers, err := pg.OpenMigrated(t.Context(), url, schema, notes)
	testenv.Must(t, err)
	t.Cleanup(writers.Close)
	readers, err := pg.OpenReaders(t.Context(), url, schema, 2)
	testenv.Must(t, err)
	t.Cleanup(readers.Close)
	for range 2 {
		conn, err := readers.Acquire(t.Context())
		testenv.Must(t, err)
		defer conn.Release()
		var timeout, readOnly string
		if err := conn.QueryRow(t.Context(), `SELECT current_setting('statement_timeout'), current_setting('transaction_read_only')`).Scan(&timeout, &readOnly); err != nil || timeout != "10s" || readOnly != "on" {
			t.Errorf("a reader's statement may take %q, read only %q, %v", timeout, readOnly, err)
		}
	}
	if stat := readers.Stat(); stat.AcquiredConns() != stat.MaxConns() {
		t.Fatalf("%d of %d readers' connections are taken", stat.AcquiredConns(), stat.MaxConns())
	}
	if err := pg.InTx(t.Context(), writers, func(tx pgx.Tx) error { return pg.AsSystem(t.Context(), tx) }); err != nil {
		t.Errorf("a writer beside readers who hold all: %v", err)
	}
}

// With several servers named, readers also connect to the primary,
// although their sessions are read-only.
func TestReadersFindThePrimary(t *testing.T) {
	url := postgrestest.URL(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	readers, err := pg.OpenReaders(t.Context(), url+separator+"target_session_attrs=read-write", schema, 2)
	testenv.Must(t, err)
	t.Cleanup(readers.Close)
	if err := readers.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// Concurrent and repeated migrations apply each file once.
func TestMigrateIsSafeToRepeat(t *testing.T) {
	pool := open(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := pg.Migrate(t.Context(), pool, schema, pg.Partitions(), notes); err != nil {
				t.Errorf("Migrate = %v", err)
			}
		})
	}
	group.Wait()
	var applied int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM migrations`).Scan(&applied); err != nil || applied != 2 {
		t.Errorf("%d files noted as applied, %v; want 2", applied, err)
	}
}

// A user of a schema gets an error that names missing migrations,
// and changes nothing.
func TestOpenCurrent(t *testing.T) {
	url, more := postgrestest.URL(t), pg.MigrationSet{Name: "more", FS: fstest.MapFS{"migrations/0001_more.sql": {Data: []byte(`CREATE TABLE more (id int)`)}}}
	_, err := pg.OpenCurrent(t.Context(), url, schema, notes)
	if !errors.Is(err, pg.ErrNotMigrated) || !strings.Contains(err.Error(), "notes/0001_notes.sql") {
		t.Errorf("of nothing: %v", err)
	}
	made, err := pg.OpenMigrated(t.Context(), url, schema, notes)
	testenv.Must(t, err)
	made.Close()
	pool, err := pg.OpenCurrent(t.Context(), url, schema, notes)
	testenv.Must(t, err)
	pool.Close()
	_, err = pg.OpenCurrent(t.Context(), url, schema, notes, more)
	if !errors.Is(err, pg.ErrNotMigrated) || strings.Contains(err.Error(), "notes/") {
		t.Errorf("of a part: %v", err)
	}
}

// A failing file leaves nothing behind and is named; earlier ones stay,
// and hold no lock while it runs.
func TestFilesAreAtomic(t *testing.T) {
	pool := open(t)
	broken := pg.MigrationSet{Name: "broken", FS: fstest.MapFS{
		"migrations/0001_good.sql": {Data: []byte(`CREATE TABLE good (id int)`)},
		"migrations/0002_bad.sql":  {Data: []byte(`CREATE TABLE half (id int); CREATE TABEL bad (id int)`)},
	}}
	if err := pg.Migrate(t.Context(), pool, schema, broken); err == nil || !strings.Contains(err.Error(), "broken/0002_bad.sql") {
		t.Fatalf("Migrate = %v, want the syntax error of the file", err)
	}
	var good, half bool
	if err := pool.QueryRow(t.Context(), `SELECT to_regclass('good') IS NOT NULL, to_regclass('half') IS NOT NULL`).Scan(&good, &half); err != nil || !good || half {
		t.Errorf("the table of the file before exists: %t, what the file began with: %t, %v", good, half, err)
	}
	mended := pg.MigrationSet{Name: "broken", FS: fstest.MapFS{
		"migrations/0001_good.sql": {Data: []byte(`CREATE TABLE good (id int)`)},
		"migrations/0002_bad.sql":  {Data: []byte(`CREATE TABLE half (id int)`)},
	}}
	if err := pg.Migrate(t.Context(), pool, schema, mended); err != nil {
		t.Errorf("what was applied is applied again: %v", err)
	}
}

// A migration behind a long reader, such as a backup, delays no writer for
// long. When it gives up, its error names a remedy, and it succeeds later.
func TestMigrationBehindALongReader(t *testing.T) {
	pool := open(t)
	write := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SET LOCAL statement_timeout = '20s'; LOCK TABLE notes IN ROW EXCLUSIVE MODE`)
		return err
	}
	change := pg.MigrationSet{Name: "change", FS: fstest.MapFS{"migrations/0001_change.sql": {Data: []byte(`ALTER TABLE notes ADD COLUMN more text`)}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := pg.InTx(t.Context(), pool, func(backup pgx.Tx) error {
		if _, err := backup.Exec(t.Context(), `LOCK TABLE notes IN ACCESS SHARE MODE`); err != nil {
			return err
		}
		migrated := make(chan error, 1)
		go func() { migrated <- pg.Migrate(ctx, pool, schema, change) }()
		untilWaiting(t, pool)
		if err := pg.InTx(t.Context(), pool, write); err != nil {
			return err
		}
		untilGivenWay(t, pool)
		cancel()
		if err := <-migrated; err == nil || !strings.Contains(err.Error(), "migrate again once a backup") {
			t.Errorf("Migrate = %v", err)
		}
		return nil
	})
	testenv.Must(t, err)
	if err := pg.Migrate(t.Context(), pool, schema, change); err != nil {
		t.Error(err)
	}
}

// The migrations of all folders are one sequence: a table may refer to
// an earlier one of another folder.
func TestFoldersMigrateInTheOrderOfNames(t *testing.T) {
	pool := open(t)
	set := pg.MigrationSet{Name: "folders", FS: fstest.MapFS{
		"b/migrations/0001_made.sql":     {Data: []byte(`CREATE TABLE made (id int PRIMARY KEY)`)},
		"a/migrations/0002_refers.sql":   {Data: []byte(`CREATE TABLE refers (id int REFERENCES made)`)},
		"migrations/0003_column.sql":     {Data: []byte(`ALTER TABLE refers ADD COLUMN more int`)},
		"a/migrations/testdata/0000.sql": {Data: []byte(`not a migration`)},
	}}
	testenv.Must(t, pg.Migrate(t.Context(), pool, schema, set))
	moved := pg.MigrationSet{Name: "folders", FS: fstest.MapFS{
		"c/migrations/0001_made.sql":   {Data: []byte(`CREATE TABLE made (id int PRIMARY KEY)`)},
		"c/migrations/0002_refers.sql": {Data: []byte(`CREATE TABLE refers (id int REFERENCES made)`)},
		"c/migrations/0003_column.sql": {Data: []byte(`ALTER TABLE refers ADD COLUMN more int`)},
	}}
	if err := pg.Migrate(t.Context(), pool, schema, moved); err != nil {
		t.Errorf("what was applied is applied again where its files have moved: %v", err)
	}
}

// Two files of the same name are refused: one would never be applied.
func TestMigrateRefusesTwoFilesOfOneName(t *testing.T) {
	pool := open(t)
	err := pg.Migrate(t.Context(), pool, schema, pg.MigrationSet{Name: "twice", FS: fstest.MapFS{
		"a/migrations/0001_made.sql": {Data: []byte(`CREATE TABLE made (id int)`)},
		"b/migrations/0001_made.sql": {Data: []byte(`CREATE TABLE made_too (id int)`)},
	}})
	if err == nil || !strings.Contains(err.Error(), "a/migrations/0001_made.sql") || !strings.Contains(err.Error(), "b/migrations/0001_made.sql") {
		t.Errorf("Migrate = %v, want an error with both files", err)
	}
}

func insert(t *testing.T, pool *pgxpool.Pool, organization string, act func(ctx context.Context, tx pgx.Tx) error) error {
	t.Helper()
	return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.EnsureDays(t.Context(), tx, "notes", day); err != nil {
			return err
		}
		if err := act(t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO notes (organization, day, text) VALUES ($1, $2, 'text')`, organization, day)
		return err
	})
}

func asOrganization(organization string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		return pg.AsOrganization(ctx, tx, pg.Organization(organization))
	}
}

// Row level security shows an organization only its own rows, even
// without a WHERE; shows the system all; and shows nothing without an
// organization. It refuses to write a foreign row.
func TestOrganizationsAreIsolated(t *testing.T) {
	pool := open(t)
	for _, organization := range []string{"org_1", "org_2"} {
		testenv.Must(t, insert(t, pool, organization, asOrganization(organization)))
	}
	if err := insert(t, pool, "org_2", asOrganization("org_1")); err == nil {
		t.Error("org_1 could write a row of org_2")
	}
	nobody := func(context.Context, pgx.Tx) error { return nil }
	for _, c := range []struct {
		who  string
		act  func(context.Context, pgx.Tx) error
		want int
	}{{"org_1", asOrganization("org_1"), 1}, {"system", pg.AsSystem, 2}, {"nobody", nobody, 0}} {
		if got := count(t, pool, c.act); got != c.want {
			t.Errorf("%s sees %d rows, want %d", c.who, got, c.want)
		}
	}
}

func count(t *testing.T, pool *pgxpool.Pool, act func(context.Context, pgx.Tx) error) (rows int) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := act(t.Context(), tx); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM notes`).Scan(&rows)
	})
	testenv.Must(t, err)
	return rows
}

// Acting for no organization, or for all by a trick, is refused.
func TestAsOrganizationNeedsOne(t *testing.T) {
	pool := open(t)
	for _, organization := range []pg.Organization{"", "*"} {
		if err := pg.ReadAs(t.Context(), pool, organization, func(pgx.Tx) error { return nil }); err == nil {
			t.Errorf("ReadAs(%q) = nil, want an error", organization)
		}
	}
}

// A transaction that names its organization as it begins is of that one,
// whatever its name has, and leaves nothing behind on the connection.
func TestOrganizationIsNamedAtTheBegin(t *testing.T) {
	pool := open(t)
	const odd = `org' OR '1' \' --`
	for _, organization := range []string{odd, "org_2"} {
		testenv.Must(t, insert(t, pool, organization, asOrganization(organization)))
	}
	for name, c := range map[string]struct {
		in   func(fn func(pgx.Tx) error) error
		want int
	}{
		"one":      {func(fn func(pgx.Tx) error) error { return pg.ReadAs(t.Context(), pool, odd, fn) }, 1},
		"none":     {func(fn func(pgx.Tx) error) error { return pg.ReadAs(t.Context(), pool, "org", fn) }, 0},
		"system":   {func(fn func(pgx.Tx) error) error { return pg.InTxAsSystem(t.Context(), pool, fn) }, 2},
		"reading":  {func(fn func(pgx.Tx) error) error { return pg.ReadAsSystem(t.Context(), pool, fn) }, 2},
		"snapshot": {func(fn func(pgx.Tx) error) error { return pg.SnapshotAsSystem(t.Context(), pool, fn) }, 2},
	} {
		var rows int
		testenv.Must(t, c.in(func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT count(*) FROM notes`).Scan(&rows) }))
		if rows != c.want {
			t.Errorf("%s: %d rows, want %d", name, rows, c.want)
		}
	}
	if got := count(t, pool, func(context.Context, pgx.Tx) error { return nil }); got != 0 {
		t.Errorf("nobody sees %d rows", got)
	}
	write := func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), `DELETE FROM notes`); return err }
	if pg.ReadAs(t.Context(), pool, odd, write) == nil || pg.ReadAsSystem(t.Context(), pool, write) == nil {
		t.Error("a reading transaction can write")
	}
}

// A read in one exchange sees one organization. It leaves nothing behind
// on the connection, even after a failed query, and can write nothing.
func TestReadBatch(t *testing.T) {
	pool := open(t)
	for _, organization := range []string{"org_1", "org_2"} {
		testenv.Must(t, insert(t, pool, organization, asOrganization(organization)))
	}
	readAll := func(organization pg.Organization, statement string) (rows int, err error) {
		err = pg.ReadBatch(t.Context(), pool, organization, func(batch *pgx.Batch) {
			batch.Queue(statement).QueryRow(func(row pgx.Row) error { return row.Scan(&rows) })
		})
		return rows, err
	}
	const all = `SELECT count(*) FROM notes`
	if rows, err := readAll("org_1", all); rows != 1 || err != nil {
		t.Errorf("org_1 reads %d rows, error %v", rows, err)
	}
	for _, statement := range []string{`SELECT 1/0`, `INSERT INTO notes (organization, day, text) VALUES ('org_1', '2026-11-21', 'text') RETURNING 1`} {
		if _, err := readAll("org_1", statement); err == nil {
			t.Errorf("%s is no error", statement)
		}
	}
	for _, impossible := range []pg.Organization{"", "*", "a\x00b", "\xff"} {
		if _, err := readAll(impossible, all); err == nil {
			t.Errorf("%q reads", impossible)
		}
	}
	nobody := func(context.Context, pgx.Tx) error { return nil }
	if got := count(t, pool, nobody); got != 0 {
		t.Errorf("nobody sees %d rows", got)
	}
	if rows, err := readAll("org_2", all); rows != 1 || err != nil {
		t.Errorf("org_2 reads %d rows, error %v", rows, err)
	}
}

// Many transactions may create the first partition of a day at the same time.
func TestEnsureDaysUnderConcurrency(t *testing.T) {
	pool := open(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := insert(t, pool, "org_1", pg.AsSystem); err != nil {
				t.Errorf("insert = %v", err)
			}
		})
	}
	group.Wait()
	if got := count(t, pool, pg.AsSystem); got != 8 {
		t.Errorf("%d rows, want 8", got)
	}
}

// A long reader of the table, such as a full check, and the first
// partition of a day do not wait for each other. The partition gets
// keys and indexes, and no row level security.
func TestEnsureDaysBesideAReader(t *testing.T) {
	pool := open(t)
	reader, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := reader.Exec(t.Context(), `SELECT count(*) FROM notes`); err != nil {
		t.Fatal(err)
	}
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '2s'`); err != nil {
			return err
		}
		if err := pg.EnsureDays(t.Context(), tx, "notes", day); err != nil {
			return err
		}
		_, err := reader.Exec(t.Context(), `SELECT count(*) FROM notes`)
		return err
	})
	if err != nil {
		t.Errorf("EnsureDays beside a reader = %v", err)
	}
	var keys int
	var secured bool
	err = pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_inherits JOIN pg_index i ON i.indexrelid = inhrelid WHERE i.indrelid = c.oid), relrowsecurity
		FROM pg_class c WHERE relname = $1`, pg.DayPartition("notes", day)).Scan(&keys, &secured)
	if err != nil || keys != 2 || secured {
		t.Errorf("the partition has %d indexes of its parent, want 2; row level security %t, %v", keys, secured, err)
	}
}

// Old days are dropped whole; the day of the bound stays.
func TestDropDaysBefore(t *testing.T) {
	pool := open(t)
	var dropped []string
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		if err = pg.EnsureDays(t.Context(), tx, "notes", day, day.AddDate(0, 0, -1), day.AddDate(0, 0, -400)); err != nil {
			return err
		}
		dropped, err = pg.DropDaysBefore(t.Context(), tx, "notes", day)
		return err
	})
	if err != nil || len(dropped) != 2 || dropped[1] != "notes_20261120" {
		t.Errorf("dropped %q, %v; want the two older days", dropped, err)
	}
}

func TestErrorClasses(t *testing.T) {
	pool := open(t)
	_, duplicate := pool.Exec(t.Context(), `INSERT INTO migrations VALUES ('notes', '0001_notes.sql')`)
	_, data := pool.Exec(t.Context(), `SELECT '\u0000'::jsonb`)
	_, wrong := pool.Exec(t.Context(), `SELECT 1 FROM nowhere`)
	gone, err := pg.Open(t.Context(), "postgres://weir@127.0.0.1:1/weir", schema)
	if gone != nil {
		t.Fatal("opened a database that isn't there")
	}
	for _, c := range []struct {
		name                    string
		err                     error
		unique, data, transient bool
	}{
		{"duplicate key", duplicate, true, true, false},
		{"a value that Postgres refuses", data, false, true, false},
		{"a wrong statement", wrong, false, false, false},
		{"no server", err, false, false, true},
		{"none of Postgres", errors.New("other"), false, false, false},
	} {
		if pg.IsUnique(c.err) != c.unique || pg.IsData(c.err) != c.data || pg.IsTransient(c.err) != c.transient {
			t.Errorf("%s: unique %t, data %t, transient %t (%v)", c.name, pg.IsUnique(c.err), pg.IsData(c.err), pg.IsTransient(c.err), c.err)
		}
	}
}
