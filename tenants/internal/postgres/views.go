// Package postgres keeps what the events of tenants say now, and answers questions about it.
package postgres

import (
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
)

// Views answers questions about what is there now.
type Views struct {
	*query.Reader
	registry.Store
	members
}

type members = people.Store

// NewViews returns the views of a reader.
func NewViews(reader *query.Reader) *Views {
	return &Views{reader, registry.NewStore(reader), people.NewStore(reader)}
}
