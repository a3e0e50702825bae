package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrReused is the error for an idempotency key under which something else was asked for before.
var ErrReused = errors.New("the idempotency key was used for another request")

// LoadAnswer reads what was answered to the request of a key; nil where nothing was. ErrReused where the input was another.
func LoadAnswer(ctx context.Context, tx pgx.Tx, organization string, key, input []byte) (answer []byte, err error) {
	var before []byte
	err = tx.QueryRow(ctx, `SELECT input, answer FROM answers WHERE organization = $1 AND key = $2`, organization, key).Scan(&before, &answer)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err == nil && !bytes.Equal(before, input):
		return nil, ErrReused
	}
	return answer, err
}

// SaveAnswer keeps what is answered to the request of a key.
func SaveAnswer(ctx context.Context, tx pgx.Tx, organization string, key, input, answer []byte, at time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO answers (organization, key, input, answer, answered_at) VALUES ($1, $2, $3, $4, $5)`,
		organization, key, input, answer, at)
	if err != nil {
		return fmt.Errorf("cannot keep an answer: %w", err)
	}
	return nil
}
