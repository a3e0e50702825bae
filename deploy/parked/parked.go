package parked

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/terminal"
	busparked "github.com/weirlog/weir/shared/bus/parked"
)

// ErrNone means that no requested record is parked.
var ErrNone = errors.New("no such record is parked")

// A Record is a parked record with its schema, hence its module.
type Record struct {
	Schema string
	busparked.Item
}

// ID names a parked record: group/topic/partition/offset.
func (r Record) ID() string {
	return fmt.Sprintf("%s/%s/%d/%d", r.Group, r.Record.Topic, r.Record.Partition, r.Record.Offset)
}

// ParseID reads the format of ID. No topic has a slash in its name.
func ParseID(id string) (busparked.Filter, error) {
	parts := strings.Split(id, "/")
	n := len(parts)
	if n < 4 {
		return busparked.Filter{}, fmt.Errorf("%q is no id of a parked record: take one from `weir parked list`, such as ledger.quota/weir.logs.v1/3/1041", id)
	}
	partition, wrong := strconv.Atoi(parts[n-2])
	offset, err := strconv.ParseInt(parts[n-1], 10, 64)
	if wrong != nil || err != nil {
		return busparked.Filter{}, fmt.Errorf("%q is no id of a parked record: it does not end in /partition/offset", id)
	}
	return busparked.Filter{Group: strings.Join(parts[:n-3], "/"), Topic: parts[n-3], Partition: &partition, Offset: &offset}, nil
}

// A Store is a connection to the database of one or more modules.
type Store struct{ conn *pgx.Conn }

// Open connects.
func Open(ctx context.Context, url string) (*Store, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the database: %w", err)
	}
	return &Store{conn}, nil
}

// Close ends the connection.
func (d *Store) Close(ctx context.Context) error { return d.conn.Close(ctx) }

// schemas returns the modules' schemas that the role may use.
func (d *Store) schemas(ctx context.Context) ([]string, error) {
	rows, err := d.conn.Query(ctx, `SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = 'bus_parked' AND c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// each works in each schema in turn, each in a transaction.
func (d *Store) each(ctx context.Context, do func(schema string, tx pgx.Tx) error) error {
	schemas, err := d.schemas(ctx)
	if err != nil {
		return fmt.Errorf("cannot find the modules' schemas: %w", err)
	}
	if len(schemas) == 0 {
		return errors.New("no module of Weir has its tables in this database")
	}
	for _, schema := range schemas {
		err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL search_path = `+pgx.Identifier{schema}.Sanitize()); err != nil {
				return err
			}
			return do(schema, tx)
		})
		if err != nil {
			return fmt.Errorf("schema %q: %w", schema, err)
		}
	}
	return nil
}

// List returns the parked records, at most limit of each schema.
func (d *Store) List(ctx context.Context, filter busparked.Filter, limit int) (found []Record, err error) {
	err = d.each(ctx, func(schema string, tx pgx.Tx) error {
		records, err := busparked.List(ctx, tx, filter, limit)
		for _, r := range records {
			found = append(found, Record{schema, r})
		}
		return err
	})
	return found, err
}

// Find returns the record of an id, or ErrNone.
func (d *Store) Find(ctx context.Context, id string) (Record, error) {
	filter, err := ParseID(id)
	if err != nil {
		return Record{}, err
	}
	found, err := d.List(ctx, filter, 1)
	if err != nil {
		return Record{}, err
	}
	if len(found) == 0 {
		return Record{}, fmt.Errorf("%w: %s", ErrNone, id)
	}
	return found[0], nil
}

// Replay requests that the records be applied again, and returns how
// many there are.
func (d *Store) Replay(ctx context.Context, filter busparked.Filter) (int64, error) {
	return d.count(ctx, filter, busparked.Replay)
}

// Discard empties the records, which are no longer listed, and returns
// how many there were.
func (d *Store) Discard(ctx context.Context, filter busparked.Filter) (int64, error) {
	return d.count(ctx, filter, busparked.Discard)
}

func (d *Store) count(ctx context.Context, filter busparked.Filter,
	do func(context.Context, pgx.Tx, busparked.Filter) (int64, error)) (total int64, err error) {
	err = d.each(ctx, func(_ string, tx pgx.Tx) error {
		n, err := do(ctx, tx, filter)
		total += n
		return err
	})
	return total, err
}

// Await waits at most wait until no consumer works on any of the
// records, and returns those that are left: they failed again or, if
// AskedAt is set, no consumer has taken them yet.
func (d *Store) Await(ctx context.Context, filter busparked.Filter, wait time.Duration) (left []Record, err error) {
	const look = 200 * time.Millisecond
	for waited := time.Duration(0); ; waited += look {
		if left, err = d.List(ctx, filter, 1000); err != nil {
			return nil, err
		}
		if !anyAsked(left) || waited >= wait {
			return left, nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return left, ctx.Err()
		}
	}
}

func anyAsked(records []Record) bool {
	for _, r := range records {
		if !r.AskedAt.IsZero() {
			return true
		}
	}
	return false
}

// Table writes records as a table, with their ages at now.
func Table(w io.Writer, records []Record, now time.Time) error {
	var rows [][]string
	for _, r := range records {
		reason, _, _ := strings.Cut(r.Reason, "\n")
		rows = append(rows, []string{
			r.ID(), r.Organization, age(now.Sub(r.ParkedAt)), strconv.Itoa(r.Attempts), strconv.Itoa(len(r.Record.Value)), r.state(now), reason,
		})
	}
	return terminal.Of(w).Table([]string{"RECORD", "ORGANIZATION", "AGE", "ATTEMPTS", "BYTES", "STATE", "REASON"}, rows)
}

// state returns whether a replay of the record is requested.
func (r Record) state(now time.Time) string {
	if r.AskedAt.IsZero() {
		return "parked"
	}
	return "replay asked " + age(now.Sub(r.AskedAt)) + " ago"
}

// age formats a duration in the largest unit that fits.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(0, int(d.Seconds()))) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + " d"
	}
}

// Details writes one record, with at most so many bytes of its value.
func Details(w io.Writer, r Record, now time.Time, most int) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, line := range [][2]string{
		{"record", r.ID()}, {"module", r.Schema}, {"organization", r.Organization}, {"written", r.Record.Time.Format(time.RFC3339Nano)},
		{"parked", r.ParkedAt.UTC().Format(time.RFC3339) + ", " + age(now.Sub(r.ParkedAt)) + " ago"},
		{"attempts", strconv.Itoa(r.Attempts) + ", the last " + age(now.Sub(r.FailedAt)) + " ago"},
		{"state", r.state(now)}, {"key", string(r.Record.Key)},
	} {
		fmt.Fprintf(t, "%s\t%s\n", line[0], terminal.Exact(line[1]))
	}
	for _, h := range r.Record.Headers {
		fmt.Fprintf(t, "header %s\t%s\n", terminal.Exact(h.Key), terminal.Exact(string(h.Value)))
	}
	fmt.Fprintf(t, "value\t%d bytes\n", len(r.Record.Value))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nreason:\n%s\n", terminal.ExactLines(r.Reason))
	value := r.Record.Value
	if len(value) > most {
		value = value[:most]
	}
	fmt.Fprintf(w, "\nvalue:\n%s\n", terminal.ExactLines(string(value)))
	if len(value) < len(r.Record.Value) {
		fmt.Fprintf(w, "… %d bytes more; --raw writes all of them\n", len(r.Record.Value)-len(value))
	}
	return nil
}
