package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

// Chained is what a decision stores of its place in the chain. Older
// decisions have the zero value.
type Chained struct {
	Previous      ledger.Hash // of the decision before; zero: it is the first
	Before, After ledger.Hash // the organization's standing
	Statements    int64       // how many were made by its end
	Stated        ledger.Hash // of the last statement
	Chain         ledger.Head // what the statements carry that it made
}

// chainedRow is a Chained as metadata stores it, in base64.
type chainedRow struct {
	Previous   []byte   `json:"previous"`
	Before     []byte   `json:"before"`
	After      []byte   `json:"after"`
	Statements int64    `json:"statements,omitempty"`
	Stated     []byte   `json:"stated,omitempty"`
	Chain      *headRow `json:"chain,omitempty"`
}

// Text returns it as metadata stores it.
func (c Chained) Text() (string, error) {
	row := chainedRow{Previous: c.Previous[:], Before: c.Before[:], After: c.After[:], Statements: c.Statements}
	if c.Statements > 0 {
		row.Stated = c.Stated[:]
	}
	if c.Chain.Sequence > 0 {
		row.Chain = &headRow{c.Chain.Sequence, c.Chain.Hash[:]}
	}
	text, err := json.Marshal(row)
	return string(text), err
}

func (c *Chained) parse(text string) error {
	if text == "" {
		return nil
	}
	var row chainedRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return fmt.Errorf("cannot read its place %q in the chain: %w", text, err)
	}
	*c = Chained{Previous: hashOf(row.Previous), Before: hashOf(row.Before), After: hashOf(row.After), Statements: row.Statements, Stated: hashOf(row.Stated)}
	if row.Chain != nil {
		c.Chain = ledger.Head{Sequence: row.Chain.Sequence, Hash: hashOf(row.Chain.Hash)}
	}
	return nil
}

// HashStored returns the hash of a decision as it was just stored: the
// columns keep the text as it is written.
func HashStored(number int64, decision ledger.Decision, metadata eventstore.Metadata) (ledger.Hash, error) {
	name, data, err := encodeDecision(decision)
	if err != nil {
		return ledger.Hash{}, err
	}
	text, err := json.Marshal(metadata)
	return ledger.LinkedDecision{Number: number, Name: name, Data: string(data), Metadata: string(text)}.Hash(), err
}

// DecisionHash returns the hash of a stored decision.
func DecisionHash(ctx context.Context, tx pgx.Tx, organization string, number int64) (ledger.Hash, error) {
	d := ledger.LinkedDecision{Number: number}
	err := tx.QueryRow(ctx, `SELECT name, data::text, metadata::text FROM events WHERE organization = $1 AND stream = $2 AND version = $3`,
		organization, decisionStream, number).Scan(&d.Name, &d.Data, &d.Metadata)
	return d.Hash(), err
}

const linkColumns = `organization, sequence, hour, charges, bytes, charged, decisions, decided, previous, hash`

// saveLinks stores links as the heads of their chains.
func saveLinks(ctx context.Context, tx pgx.Tx, links []ledger.Link) error {
	n := len(links)
	ids, sequences, hours := make([]string, n), make([]int64, n), make([]time.Time, n)
	charges, bytes, decisions := make([]int64, n), make([]int64, n), make([]int64, n)
	charged, decided, previous, hashes := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i := range links {
		l := &links[i]
		ids[i], sequences[i], hours[i] = l.Organization, l.Sequence, l.Hour
		charges[i], bytes[i], decisions[i] = l.Charges, l.Bytes, l.Decisions
		charged[i], decided[i], previous[i], hashes[i] = l.Charged[:], l.Decided[:], l.Previous[:], l.Hash[:]
	}
	_, err := tx.Exec(ctx, `INSERT INTO links (`+linkColumns+`) SELECT * FROM unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::bigint[],
		$5::bigint[], $6::bytea[], $7::bigint[], $8::bytea[], $9::bytea[], $10::bytea[])`,
		ids, sequences, hours, charges, bytes, charged, decisions, decided, previous, hashes)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO chains (organization, sequence, hour, decisions, hash)
		SELECT * FROM unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::bigint[], $5::bytea[])
		ON CONFLICT (organization) DO UPDATE SET sequence = excluded.sequence, hour = excluded.hour, decisions = excluded.decisions, hash = excluded.hash`,
		ids, sequences, hours, decisions, hashes)
	return err
}

// A LinkQuery selects at most Limit links of hours in [From, To),
// before the sequence Before unless it is zero.
type LinkQuery struct {
	From, To time.Time
	Before   int64
	Limit    int
}

// Links lists an organization's links, the latest first.
func Links(ctx context.Context, tx pgx.Tx, organization pg.Organization, q LinkQuery) ([]ledger.Link, error) {
	rows, _ := tx.Query(ctx, `SELECT `+linkColumns+` FROM links WHERE organization = $1 AND hour >= $2 AND hour < $3
		AND ($4 = 0 OR sequence < $4) ORDER BY sequence DESC LIMIT $5`, organization, q.From, q.To, q.Before, q.Limit)
	return collectLinks(rows)
}

// Head returns the last link of an organization's chain without its
// content; its sequence is zero where there is none.
func Head(ctx context.Context, tx pgx.Tx, organization pg.Organization) (ledger.Link, error) {
	heads, err := headsOf(ctx, tx, []string{string(organization)})
	return heads[string(organization)], err
}

func collectLinks(rows pgx.Rows) (links []ledger.Link, err error) {
	var l ledger.Link
	var charged, decided, previous, hash []byte
	fields := []any{&l.Organization, &l.Sequence, &l.Hour, &l.Charges, &l.Bytes, &charged, &l.Decisions, &decided, &previous, &hash}
	_, err = pgx.ForEachRow(rows, fields, func() error {
		l.Hour, l.Charged, l.Decided, l.Previous, l.Hash = l.Hour.UTC(), hashOf(charged), hashOf(decided), hashOf(previous), hashOf(hash)
		links = append(links, l)
		return nil
	})
	return links, err
}

// Transfers of charges, those of one charge together. Sorting by bytes
// takes a fifth of a language's order.
const (
	ofCharges     = `source = 0 AND reason IN (2, 4)`
	chargeColumns = `t.organization, t.partition, t."offset", t.event, t.project, t.key, t.amount, t.entries`
	chargeOrder   = `t.organization COLLATE "C", t.partition, t."offset"`
)

// forEachCharge calls each with the charges in rows of chargeColumns,
// which are in chargeOrder.
func forEachCharge(rows pgx.Rows, each func(organization string, c ledger.LinkedCharge)) error {
	var last, next struct {
		organization string
		charge       ledger.LinkedCharge
	}
	c := &next.charge
	fields := []any{&next.organization, &c.Partition, &c.Offset, &c.Event, &c.Project, &c.Key, &c.Bytes, &c.Entries}
	_, err := pgx.ForEachRow(rows, fields, func() error {
		if next.organization == last.organization && sameCharge(*c, last.charge) {
			last.charge.Bytes, last.charge.Entries = last.charge.Bytes+c.Bytes, last.charge.Entries+c.Entries
			return nil
		}
		if last.organization != "" {
			each(last.organization, last.charge)
		}
		last = next
		return nil
	})
	if err == nil && last.organization != "" {
		each(last.organization, last.charge)
	}
	return err
}

// sameCharge reports whether two transfers are of one charge. If only
// their position agrees, one was tampered with.
func sameCharge(a, b ledger.LinkedCharge) bool {
	a.Bytes, a.Entries = b.Bytes, b.Entries
	return a == b
}

// Charged is what requests of one organization were charged, whose last
// records lie in a range of offsets.
type Charged struct {
	Organization string
	Requests     int64
	Bytes        int64
	First, Last  time.Time // when the first and the last were accepted
}

// ChargedIn returns what was charged in a range of a partition.
func ChargedIn(ctx context.Context, tx pgx.Tx, partition int, from, to int64) ([]Charged, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, count(DISTINCT "offset"), sum(amount)::bigint, min(effective_at), max(effective_at) FROM transfers
		WHERE source = 0 AND reason IN (2, 4) AND partition = $1 AND "offset" >= $2 AND "offset" < $3
			AND booked_at >= (SELECT min(booked_from) FROM ranges WHERE partition = $1 AND next_offset > $2 AND first_offset < $3)
		GROUP BY 1 ORDER BY 1`, partition, from, to)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Charged])
}

// A DailyRoot is the root of the last sealed hour of a UTC day.
type DailyRoot struct {
	Hour          time.Time
	Root          []byte
	Organizations int64
}

// DailyRoots returns those of all days kept.
func DailyRoots(ctx context.Context, tx pgx.Tx) ([]DailyRoot, error) {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT ON ((hour AT TIME ZONE 'UTC')::date) hour, root, organizations FROM seals WHERE root IS NOT NULL
		ORDER BY (hour AT TIME ZONE 'UTC')::date, hour DESC`)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DailyRoot])
}
