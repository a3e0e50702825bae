package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

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
	rows, err := tx.Query(ctx, `SELECT organization, count(DISTINCT "offset"), sum(amount)::bigint, min(effective_at), max(effective_at) FROM transfers
		WHERE source = 0 AND reason IN (2, 4) AND partition = $1 AND "offset" >= $2 AND "offset" < $3
			AND booked_at >= (SELECT min(booked_from) FROM ranges WHERE partition = $1 AND next_offset > $2 AND first_offset < $3)
		GROUP BY 1 ORDER BY 1`, partition, from, to)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Charged])
}
