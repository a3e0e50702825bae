// Package postgres keeps what the events of tenants say now, and answers questions about it.
package postgres

import "github.com/weirlog/weir/tenants/internal/query"

// Views answers questions about what is there now.
type Views struct{ *query.Reader }

// NewViews returns the views of a reader.
func NewViews(reader *query.Reader) *Views { return &Views{reader} }
