package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/eventstore"
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
