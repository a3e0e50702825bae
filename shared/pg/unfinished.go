package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Unfinished begins the comment on a schema whose restore has not
// ended: it holds only a part.
const Unfinished = "restore unfinished"

// ErrNotEmpty means that a schema has objects.
var ErrNotEmpty = errors.New("the schema is not empty")

// Claim reserves an empty schema for one restore, whose comment begins
// with Unfinished: from then on nobody else migrates or claims it.
// After an error the schema is not the caller's.
func Claim(ctx context.Context, tx pgx.Tx, schema, comment string) error {
	if err := lock(ctx, tx, schema); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{schema}.Sanitize()); err != nil {
		return err
	}
	if err := refuseUnfinished(ctx, tx, schema); err != nil {
		return err
	}
	if err := RequireEmpty(ctx, tx, schema); err != nil {
		return err
	}
	return Comment(ctx, tx, schema, comment)
}

// RequireEmpty fails with ErrNotEmpty on a schema that has a table,
// type or function. A missing one is empty.
func RequireEmpty(ctx context.Context, tx pgx.Tx, schema string) error {
	var filled bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace n WHERE nspname = $1 AND (EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid)
		OR EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid) OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid)))`, schema).Scan(&filled)
	if err == nil && filled {
		err = ErrNotEmpty
	}
	return err
}

// Comment replaces the comment on a schema.
func Comment(ctx context.Context, tx pgx.Tx, schema, text string) error {
	_, err := tx.Exec(ctx, `COMMENT ON SCHEMA `+pgx.Identifier{schema}.Sanitize()+` IS '`+strings.ReplaceAll(text, "'", "''")+`'`)
	return err
}

// Abandon drops a schema that still has the comment given by Claim.
func Abandon(ctx context.Context, tx pgx.Tx, schema, comment string) error {
	if err := lock(ctx, tx, schema); err != nil {
		return err
	}
	found, err := commentOf(ctx, tx, schema)
	if err != nil {
		return err
	}
	if found != comment {
		return fmt.Errorf("the schema %q is another one now, and stays as it is", schema)
	}
	_, err = tx.Exec(ctx, `DROP SCHEMA `+pgx.Identifier{schema}.Sanitize()+` CASCADE`)
	return err
}

func commentOf(ctx context.Context, tx pgx.Tx, schema string) (comment string, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(max(obj_description(oid, 'pg_namespace')), '') FROM pg_namespace WHERE nspname = $1`, schema).Scan(&comment)
	return comment, err
}

// refuseUnfinished fails on a schema of which only a part was restored.
func refuseUnfinished(ctx context.Context, tx pgx.Tx, schema string) error {
	comment, err := commentOf(ctx, tx, schema)
	if err != nil {
		return err
	}
	if strings.HasPrefix(comment, Unfinished) {
		return fmt.Errorf("it is but a part of a backup (%s): drop it (DROP SCHEMA %s CASCADE) and restore it again", comment, pgx.Identifier{schema}.Sanitize())
	}
	return nil
}
