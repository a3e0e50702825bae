package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

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
	rows, err := tx.Query(ctx, `SELECT `+linkColumns+` FROM links WHERE organization = $1 AND hour >= $2 AND hour < $3
		AND ($4 = 0 OR sequence < $4) ORDER BY sequence DESC LIMIT $5`, organization, q.From, q.To, q.Before, q.Limit)
	if err != nil {
		return nil, err
	}
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
