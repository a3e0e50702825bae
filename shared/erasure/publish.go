package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// publish publishes what was removed once all is erased, and records
// that. After a crash in between it publishes again.
func (e *Eraser) publish(ctx context.Context, of Deletion) error {
	erased := contract.Erased{Organization: of.Organization, Project: of.Project, Module: e.Module}
	err := e.asSystem(ctx, func(tx pgx.Tx) error {
		var removed []byte
		err := tx.QueryRow(ctx, `SELECT removed, erased_at FROM erasures
			WHERE organization = $1 AND project = $2 AND erased_at IS NOT NULL AND published_at IS NULL`, of.Organization, of.Project).
			Scan(&removed, &erased.ErasedAt)
		if err != nil {
			return err
		}
		return json.Unmarshal(removed, &erased.Removed)
	})
	if errors.Is(err, pgx.ErrNoRows) { // another replica works on it
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read what was removed: %w", err)
	}
	if err := e.send(ctx, erased); err != nil {
		return err
	}
	return e.asSystem(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE erasures SET published_at = $3 WHERE organization = $1 AND project = $2`, of.Organization, of.Project, e.Clock().UTC())
		return err
	})
}

func (e *Eraser) send(ctx context.Context, erased contract.Erased) error {
	erased.ErasedAt = erased.ErasedAt.UTC()
	value, err := json.Marshal(erased)
	if err != nil {
		return fmt.Errorf("cannot encode what was removed: %w", err)
	}
	key := contract.HolderKey(erased.Organization, erased.Project) + "/" + e.Module
	m := message.NewMessage(key, value)
	m.Metadata = contract.Attributes{
		ID: key, Type: contract.TypeErased, Source: "weir/" + e.Module, Time: erased.ErasedAt, Organization: erased.Organization,
	}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err := e.Bus.PublishContext(ctx, contract.TopicErasures, m); err != nil {
		return fmt.Errorf("cannot publish what was removed: %w", err)
	}
	return nil
}
