package answers

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

// ErrReused is the error for an idempotency key under which
// something else was asked for before.
var ErrReused = errors.New("the idempotency key was used for another request")

// A Request is one that has its effect once.
type Request struct {
	table, organization string
	key, input          []byte // hashes; nil: every request is a new one
}

// NewRequest is what somebody of an organization asks for, under a key of their
// own. Without a key it is always a new one.
func NewRequest(table, organization, key string, input []byte) Request {
	if key == "" {
		return Request{}
	}
	hashed, of := sha256.Sum256([]byte(key)), sha256.Sum256(input)
	return Request{table: pgx.Identifier{table}.Sanitize(), organization: organization, key: hashed[:], input: of[:]}
}

// Load reads what was answered before into answer. ErrReused
// where the input was another.
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

// Save keeps what is answered.
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
