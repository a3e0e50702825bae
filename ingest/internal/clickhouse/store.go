package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
)

// Limits bound one page of a search, or one count.
type Limits struct {
	Bytes int           // of entries that are read here
	Time  time.Duration // at work
}

// Config is what a Store works with.
type Config struct {
	URL     string // of a user who writes
	ReadURL string // of one who only reads; empty: URL
	Layout  Layout // its database is that of URL
	Quorum  int    // replicas that must have an insert; up to 1: the server alone
	Limits  Limits
	Clock   func() time.Time
}

// A Store keeps entries as rows. It is safe for concurrent use.
type Store struct {
	writer, reader *client
	layout         Layout
	limits         Limits
	clock          func() time.Time
}

// New makes a store; it connects to nothing.
func New(config Config) (*Store, error) {
	writer, err := parse(config.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address of ClickHouse: %w", err)
	}
	reader := writer
	if config.ReadURL != "" {
		if reader, err = parse(config.ReadURL); err != nil {
			return nil, fmt.Errorf("cannot read the address of ClickHouse for searches: %w", err)
		}
	}
	writer.quorum, reader.quorum = config.Quorum, config.Quorum
	config.Layout.Database = writer.database
	return &Store{writer, reader, config.Layout, config.Limits, config.Clock}, nil
}

// A Batch is the rows of one insert, all of one partition.
type Batch struct {
	Move      int64
	Retention int
	Day       time.Time
	Token     string // what ClickHouse has inserted with it, it does not insert again
	Deadline  time.Time
	rows      []byte
	words     []byte
}

// Add appends the entries of a block.
func (b *Batch) Add(organization, project string, block [16]byte, entries []ingest.Stored) {
	row := Row{Organization: organization, Project: project, Retention: b.Retention, Day: b.Day, Block: block, Move: b.Move}
	for i := range entries {
		b.words = ingest.HiddenWords(b.words[:0], entries[i].Text)
		b.rows = appendRow(b.rows, &row, &entries[i], b.words, b.Deadline)
	}
}

// insertTime bounds an insert at the server, from when it has begun.
const insertTime = 2 * time.Minute

// Insert sends a batch as one block, which becomes one part or none. After an
// error nobody knows which: see Present.
func (s *Store) Insert(ctx context.Context, b *Batch) error {
	with := settings{
		"async_insert": "0", "insert_deduplicate": "1", "insert_deduplication_token": b.Token, "max_insert_block_size": "1048576",
		"distributed_foreground_insert": "1", "max_execution_time": seconds(insertTime),
	}
	if s.writer.quorum > 1 {
		with["insert_quorum"], with["insert_quorum_parallel"] = strconv.Itoa(s.writer.quorum), "0"
	}
	err := s.writer.exec(ctx, `INSERT INTO entries (`+columns+`) FORMAT RowBinary`, with, b.rows)
	if err != nil {
		return fmt.Errorf("cannot insert move %d into ClickHouse: %w", b.Move, err)
	}
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// Presence is what ClickHouse has of a block.
type Presence struct {
	Rows, Entries int64 // Entries counts each identity once
}

func ofMove(move int64, retention int, day time.Time) string {
	return fmt.Sprintf("retention = %d AND day = '%s' AND move = %d", retention, day.Format(time.DateOnly), move)
}

// Present returns what ClickHouse has of a move, by block.
func (s *Store) Present(ctx context.Context, move int64, retention int, day time.Time) (map[[16]byte]Presence, error) {
	query := `SELECT block, toInt64(count()), toInt64(uniqExact(batch, number)) FROM entries WHERE ` + ofMove(move, retention, day) + `
		GROUP BY block FORMAT RowBinary`
	answer, err := s.writer.run(ctx, everyone, query, s.writer.consistent(nil), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask ClickHouse what it has of move %d: %w", move, err)
	}
	defer answer.Close()
	present := map[[16]byte]Presence{} // bounded by the blocks of a move
	rows := newRowReader(answer)
	for rows.more() {
		var block [16]byte
		rows.fixed(block[:])
		present[block] = Presence{Rows: rows.int64(), Entries: rows.int64()}
	}
	return present, rows.err
}

// Delete deletes what there is of a move, and returns once no query sees it. What
// later attempts insert, which have later deadlines, stays where it is late itself; zero: nothing does.
func (s *Store) Delete(ctx context.Context, move int64, retention int, day, deadline time.Time) error {
	statement := `DELETE FROM ` + s.layout.Local() + ` WHERE ` + ofMove(move, retention, day)
	if !deadline.IsZero() {
		statement += fmt.Sprintf(` AND deadline <= toDateTime(%d, 'UTC')`, deadline.Unix())
	}
	if err := s.writer.exec(ctx, statement, settings{"lightweight_deletes_sync": "2"}, nil); err != nil {
		return fmt.Errorf("cannot delete move %d in ClickHouse: %w", move, err)
	}
	return nil
}

// Discard deletes all moves after one.
func (s *Store) Discard(ctx context.Context, after int64) error {
	statement := fmt.Sprintf(`DELETE FROM %s WHERE move > %d`, s.layout.Local(), after)
	return s.writer.exec(ctx, statement, settings{"lightweight_deletes_sync": "2"}, nil)
}

// LastMove returns the largest number of a move in the table; 0: it is empty.
func (s *Store) LastMove(ctx context.Context) (int64, error) {
	rows, err := s.writer.numbers(ctx, everyone, `SELECT max(move) FROM entries`, s.writer.consistent(nil))
	if err != nil {
		return 0, fmt.Errorf("cannot ask ClickHouse for its last move: %w", err)
	}
	return rows[0][0], nil
}

// A Returning is a move whose rows are to become blocks again.
type Returning struct {
	Move, Retention int64
	Day             time.Time
}

// Returning lists some moves of the oldest days.
func (s *Store) Returning(ctx context.Context) (list []Returning, err error) {
	query := `SELECT move, retention, toUnixTimestamp(toDateTime(day, 'UTC')) FROM entries
		GROUP BY move, retention, day ORDER BY day, move LIMIT 100`
	rows, err := s.writer.numbers(ctx, everyone, query, s.writer.consistent(nil))
	if err != nil {
		return nil, fmt.Errorf("cannot list what ClickHouse has: %w", err)
	}
	for _, row := range rows {
		list = append(list, Returning{row[0], row[1], time.Unix(row[2], 0).UTC()})
	}
	return list, nil
}

// Rows calls each with the rows of a move, by organization and project.
func (s *Store) Rows(ctx context.Context, move int64, retention int, day time.Time, each func(organization, project string, entry ingest.Stored)) error {
	query := `SELECT organization, ` + entryColumns + ` FROM entries WHERE ` + ofMove(move, retention, day) + `
		ORDER BY organization, project, seconds, nanos FORMAT RowBinary`
	answer, err := s.writer.run(ctx, everyone, query, s.writer.consistent(nil), nil)
	if err != nil {
		return fmt.Errorf("cannot read move %d from ClickHouse: %w", move, err)
	}
	defer answer.Close()
	rows := newRowReader(answer)
	for rows.more() {
		organization := string(rows.text())
		project, entry := rows.entry()
		if rows.err == nil {
			each(organization, project, entry)
		}
	}
	return rows.err
}

// Erase deletes an organization, or a project of it, and reports whether
// nothing of it is left. It does not wait for the deletion.
func (s *Store) Erase(ctx context.Context, organization, project string) (left int64, err error) {
	conditions := []string{`organization = ` + literal(organization)}
	if project != "" {
		conditions = append(conditions, `project = `+literal(project))
	}
	of, begun := all(conditions...), `SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done`
	for _, condition := range conditions {
		begun += ` AND position(command, ` + literal(condition) + `) > 0`
	}
	rows, err := s.writer.numbers(ctx, everyone, `SELECT count() FROM entries WHERE `+of, s.writer.consistent(nil))
	if err != nil || rows[0][0] == 0 {
		return 0, err
	}
	under, err := s.writer.numbers(ctx, everyone, begun, nil)
	if err != nil || under[0][0] > 0 {
		return rows[0][0], err
	}
	return rows[0][0], s.writer.exec(ctx, `ALTER TABLE `+s.layout.Local()+` DELETE WHERE `+of, settings{"mutations_sync": "0"}, nil)
}

// Verify counts the rows of the moves after one, and the identities of their
// entries, which are as many if each is there once.
func (s *Store) Verify(ctx context.Context, after int64) (rows, entries int64, err error) {
	query := fmt.Sprintf(`SELECT count(), uniqExact(batch, number) FROM entries WHERE move > %d`, after)
	counted, err := s.writer.numbers(ctx, everyone, query, s.writer.consistent(nil))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot count in ClickHouse: %w", err)
	}
	return counted[0][0], counted[0][1], nil
}

// IsUnreachable reports whether an error is that of a server that did not answer,
// and not its refusal.
func IsUnreachable(err error) bool {
	var refused *Error
	return err != nil && !errors.As(err, &refused)
}

// Bytes returns the size of what Insert sends.
func (b *Batch) Bytes() int { return len(b.rows) }
