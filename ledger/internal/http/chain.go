package http

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

type linkBody struct {
	Sequence  int64     `json:"sequence"`
	Hour      time.Time `json:"hour"`
	Charges   int64     `json:"charges"`
	Bytes     int64     `json:"bytes"`
	Charged   string    `json:"charged"`   // hash of the charges
	Decisions int64     `json:"decisions"` // number by the end of the hour
	Decided   string    `json:"decided"`   // hash of those since the link before
	Previous  string    `json:"previous"`
	Hash      string    `json:"hash"`
}

func newLinkBody(l ledger.Link) linkBody {
	return linkBody{
		Sequence: l.Sequence, Hour: l.Hour, Charges: l.Charges, Bytes: l.Bytes, Charged: hexOf(l.Charged), Decisions: l.Decisions,
		Decided: hexOf(l.Decided), Previous: hexOf(l.Previous), Hash: hexOf(l.Hash),
	}
}

func hexOf(h ledger.Hash) string { return hex.EncodeToString(h[:]) }

// linkPlace is where a list of links continues.
type linkPlace struct {
	Before int64 `json:"b"`
}

// chain lists the links of an organization's chain, the latest first.
func (a *API) chain(w http.ResponseWriter, r *http.Request) error {
	page, err := pageOf[linkPlace](r)
	if err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Integrity.Chain(r.Context(), organization,
		postgres.LinkQuery{From: page.from, To: page.to, Before: page.after.Before, Limit: page.limit + 1})
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteList(w, r, found, page.limit, newLinkBody, func(l ledger.Link) linkPlace { return linkPlace{l.Sequence} })
	return nil
}
