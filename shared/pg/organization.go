package pg

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// An Organization is the id of the one whose rows a query may see. As a type
// of its own it excludes other ids: a string becomes one only by a conversion.
type Organization string

// everyOrganization means all organizations in row level security policies.
const everyOrganization = "*"

// Check refuses what can't be an organization's id.
func (o Organization) Check() error {
	if o == "" || o == everyOrganization || !utf8.ValidString(string(o)) || strings.ContainsRune(string(o), 0) {
		return fmt.Errorf("cannot act as an organization without its id: %q is none", string(o))
	}
	return nil
}

// AsOrganization restricts the rest of the transaction to one
// organization's rows. Every request path starts with it; row level
// security is forced, so a forgotten WHERE shows no foreign row.
func AsOrganization(ctx context.Context, tx pgx.Tx, organization Organization) error {
	if err := organization.Check(); err != nil {
		return err
	}
	return setOrganization(ctx, tx, string(organization))
}

// AsSystem lets the rest of the transaction see the rows of every
// organization: for consumers, relays and operators.
func AsSystem(ctx context.Context, tx pgx.Tx) error {
	return setOrganization(ctx, tx, everyOrganization)
}

// InTxAsSystem is InTx with AsSystem.
func InTxAsSystem(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// ReadAs runs fn in a read-only transaction that sees one organization's rows.
func ReadAs(ctx context.Context, pool *pgxpool.Pool, organization Organization, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := AsOrganization(ctx, tx, organization); err != nil {
			return err
		}
		return fn(tx)
	})
}

// ReadBatch sends queries for one organization's rows in one snapshot, with
// the transaction around them, in a single exchange: on a busy machine each
// exchange waits for a processor. After an error it closes the connection.
func ReadBatch(ctx context.Context, pool *pgxpool.Pool, organization Organization, queue func(batch *pgx.Batch)) error {
	if err := organization.Check(); err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	batch.Queue(selectOrganization, string(organization))
	queue(&batch)
	batch.Queue(`COMMIT`)
	return pool.SendBatch(ctx, &batch).Close()
}

const selectOrganization = `SELECT set_config('weir.organization', $1, true)`

func setOrganization(ctx context.Context, tx pgx.Tx, value string) error {
	if _, err := tx.Exec(ctx, selectOrganization, value); err != nil {
		return fmt.Errorf("cannot act as organization %q: %w", value, err)
	}
	return nil
}
