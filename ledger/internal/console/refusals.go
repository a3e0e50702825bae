package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/usage"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

type refusalsPage struct {
	Refusals []shownRefusal
	Pager    ui.Pager
}

// A shownRefusal is a refusal as text.
type shownRefusal struct {
	usage.ExplainedRefusal
	ProjectName string
	Suspended   bool
	Spender     string // whose budget refused it; empty: none
	By          []shownShare
	Grant       int64
	Tiers       []ledger.Tier
	EndsAt      time.Time
}

// A shownShare is a project, key or hour and its bytes.
type shownShare struct {
	Kind, Name string
	Bytes      int64
}

func (c *console) showRefusals(w http.ResponseWriter, r *http.Request) error {
	query := postgres.RefusalQuery{To: distantFuture(), Limit: pageSize + 1}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &query.After); err != nil {
			return err
		}
	}
	found, err := c.Services.Usage.Refusals(r.Context(), identity.FromContext(r.Context()).Organization, query)
	if err != nil && !errors.Is(err, ledger.ErrNoOrganization) {
		return err
	}
	list := httpapi.NewList(r, found, pageSize, func(last usage.ExplainedRefusal) any { return postgres.RefusalPlace(last.Refusal) })
	page := refusalsPage{Pager: ui.NewPager(r, list.NextCursor)}
	for _, refusal := range list.Items {
		page.Refusals = append(page.Refusals, c.showRefusal(refusal))
	}
	c.pages.Write(w, r, http.StatusOK, "refusals", ui.View{Title: "Why requests were refused", Data: page})
	return nil
}

// spenderOf returns the spender whose budget refused a request.
func spenderOf(r ledger.Refusal) string {
	switch r.Reason {
	case contract.ReasonProjectBudget:
		return "project"
	case contract.ReasonKeyBudget:
		return "API key"
	}
	return ""
}

func (c *console) showRefusal(r usage.ExplainedRefusal) shownRefusal {
	shown := shownRefusal{
		ExplainedRefusal: r, ProjectName: c.nameOf(postgres.ByProject, r.Cause.Project), Suspended: r.Reason == contract.ReasonSuspended,
		Spender: spenderOf(r.Refusal), Grant: r.Resolution.Grant, Tiers: r.Resolution.Tiers, EndsAt: r.EndsAt,
	}
	if r.Crossed != nil {
		for _, share := range r.Crossed.UsedBy {
			shown.By = append(shown.By, shownShare{share.By, c.nameOf(postgres.Dimension(share.By), share.ID), share.Bytes})
		}
	}
	return shown
}
