package identity

import (
	"log/slog"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
)

// Follow returns a reader that keeps the credentials as weir.credentials.v1 tells them. from says how to read; its Topic and
// its Apply are not looked at, here and below.
func (c *Credentials) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicCredentials, func(record bus.Record) error {
		return c.Apply(string(record.Key), record.Value)
	}
	return state.NewReader(from, logger)
}

// Follow returns a reader that keeps the directory as weir.tenants.v1 tells it.
func (d *Directory) Follow(from state.Config, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicTenants, func(record bus.Record) error {
		return d.Apply(record.Header(contract.HeaderType), record.Value)
	}
	return state.NewReader(from, logger)
}
