package pages

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// PageSize is how many rows a list shows at once.
const PageSize = 50

// ListOf finds the rows of a list, and links to the other pages. find returns
// at most limit rows after a position, and place is a row's position.
func ListOf[T any](r *http.Request, find func(from query.Position, limit int) ([]T, error), place func(T) query.Position) ([]T, ui.Pager, error) {
	var from query.Position
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &from); err != nil {
			return nil, ui.Pager{}, err
		}
	}
	found, err := find(from, PageSize+1)
	if err != nil {
		return nil, ui.Pager{}, err
	}
	list := httpapi.NewList(r, found, PageSize, func(last T) any { return place(last) })
	return list.Items, ui.NewPager(r, list.NextCursor), nil
}

// A ShownCapacity is a tenants.Capacity as text.
type ShownCapacity struct {
	Text string
	Full bool // no more can be added
}

// CapacityOf is the capacity in the reader's organization, as text.
func CapacityOf(r *http.Request, find func(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error)) (ShownCapacity, error) {
	capacity, err := find(r.Context(), CallerOf(r))
	if capacity.Full() {
		return ShownCapacity{tenants.LimitReached{What: capacity.What, Limit: capacity.Limit}.Error(), true}, err
	}
	return ShownCapacity{Text: fmt.Sprintf("%d of at most %d %s.", capacity.Have, capacity.Limit, capacity.What)}, err
}
