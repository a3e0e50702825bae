package identity

import (
	"log/slog"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
)

// Follow returns a reader that keeps c up to date with weir.credentials.v1.
// from configures it, except Topic, here and below. Its Apply is Consume,
// unless another calls that.
func (c *Credentials) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Marker = contract.TopicCredentials, contract.CredentialsComparedKey
	if from.Apply == nil {
		from.Apply = c.Consume
	}
	reader := state.NewReader(from, logger)
	c.whole = reader.Whole
	return reader
}

// Consume takes a record of weir.credentials.v1. It ignores other
// types: a newer tenants may publish more. Tombstones may have none.
func (c *Credentials) Consume(record bus.Record) error {
	switch kind := record.Header(contract.HeaderType); {
	case len(record.Value) == 0, kind == contract.TypeCredentialChanged:
		return c.Apply(string(record.Key), record.Value)
	case kind == contract.TypeHolderChanged:
		return c.ApplyHolder(string(record.Key), record.Value)
	case kind == contract.TypeCredentialsCompared:
		return c.applyCompared(record)
	}
	return nil
}

// Follow returns a reader that keeps d up to date with weir.tenants.v1.
func (d *Directory) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicTenants, func(record bus.Record) error {
		if len(record.Value) == 0 { // a tombstone's project was forgotten when the deletion began
			return nil
		}
		return d.Apply(record.Header(contract.HeaderType), record.Value)
	}
	return state.NewReader(from, logger)
}
