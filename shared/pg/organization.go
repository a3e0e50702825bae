package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// An Organization is the id of whose rows a query may see. Its own type keeps other ids out: a
// string becomes one only by a conversion.
type Organization string

// everyOrganization is what the row level security policies take for "all of them".
const everyOrganization = "*"

// AsOrganization restricts the rest of the transaction to the rows of one organization. Every
// request path starts with it; row level security is forced, so a forgotten WHERE shows nothing
// foreign.
func AsOrganization(ctx context.Context, tx pgx.Tx, organization Organization) error {
	if organization == "" || organization == everyOrganization {
		return errors.New("cannot act as an organization without its id")
	}
	return setOrganization(ctx, tx, string(organization))
}

// AsSystem lets the rest of the transaction see the rows of every organization: for consumers,
// relays and operators.
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

func setOrganization(ctx context.Context, tx pgx.Tx, value string) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('weir.organization', $1, true)`, value); err != nil {
		return fmt.Errorf("cannot act as organization %q: %w", value, err)
	}
	return nil
}
