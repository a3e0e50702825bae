package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrReused means that an idempotency key was used for another request before.
var ErrReused = errors.New("the idempotency key was used for another request")

// A Request has its effect once.
type Request struct {
	table, organization string
	key, input          []byte // hashes; nil: every request is a new one
}

// NewRequest returns a request of an organization, under its
// idempotency key. Without a key it is always a new one.
func NewRequest(table, organization, key string, input []byte) Request {
	if key == "" {
		return Request{}
	}
	hashed, of := sha256.Sum256([]byte(key)), sha256.Sum256(input)
	return Request{table: pgx.Identifier{table}.Sanitize(), organization: organization, key: hashed[:], input: of[:]}
}

// Load reads an earlier answer into answer. It returns ErrReused if the
// input was another.
func (r Request) Load(ctx context.Context, tx pgx.Tx, answer any) (known bool, err error) {
	if r.key == nil {
		return false, nil
	}
	var input, text []byte
	err = tx.QueryRow(ctx, `SELECT input, answer FROM `+r.table+` WHERE organization = $1 AND key = $2`, r.organization, r.key).Scan(&input, &text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot read what was answered before: %w", err)
	case !bytes.Equal(input, r.input):
		return false, ErrReused
	}
	return true, json.Unmarshal(text, answer)
}

// Save stores an answer.
func (r Request) Save(ctx context.Context, tx pgx.Tx, answer any, at time.Time) error {
	if r.key == nil {
		return nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO `+r.table+` (organization, key, input, answer, answered_at) VALUES ($1, $2, $3, $4, $5)`,
		r.organization, r.key, r.input, text, at)
	if err != nil {
		return fmt.Errorf("cannot keep an answer: %w", err)
	}
	return nil
}
