package grants

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// An Adjustment is a correction and its transfers.
type Adjustment struct {
	ID           string
	Organization string
	Bytes        int64 // credited; negative: charged
	Reason       string
	Of           time.Time // start of the corrected period; zero: that of At
	At           time.Time
	Transfers    []ledger.Transfer
}

// adjustInput is the input of a request to adjust.
type adjustInput struct {
	Bytes  int64
	Reason string
	Of     time.Time
}

// InputName is stored: the type's first name.
func (adjustInput) InputName() string { return "service.adjusting" }

// Adjust credits bytes to an organization; negative bytes are charged.
// of is any instant of the wrong period; zero: the running one.
func (s *Service) Adjust(ctx context.Context, organization string, request unitofwork.Request, bytes int64, reason string, of time.Time) (Adjustment, error) {
	id := "adj_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		decision, err := books.Adjust(bytes, reason, id, of, at)
		return []ledger.Decision{decision}, err
	}
	answer := func(_ pgx.Tx, books *ledger.Books, at time.Time) (Adjustment, error) {
		made := Adjustment{ID: id, Organization: organization, Bytes: bytes, Reason: reason, At: at, Transfers: books.Transfers}
		made.Of = books.Transfers[len(books.Transfers)-1].Of
		return made, nil
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, adjustInput{bytes, reason, of}, choose, answer)
}
