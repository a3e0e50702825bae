package notifications

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

type webhookPage struct {
	onePage
	Deliveries []Delivery
	Pager      ui.Pager
	Failed     bool // some can be replayed
}

// showOne shows a webhook and its deliveries, newest first.
func (p Pages) showOne(w http.ResponseWriter, r *http.Request, of Listed) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(before query.Position, limit int) ([]Delivery, error) {
		return p.deliveries.List(r.Context(), caller, of.Ref(), "", before, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfDelivery)
	if err != nil {
		return err
	}
	failed, err := p.deliveries.List(r.Context(), caller, of.Ref(), Failed, query.Position{}, 1)
	if err != nil {
		return err
	}
	p.write(w, r, http.StatusOK, "webhook", "Webhook", webhookPage{onePage{shown, of, len(of.Secrets(p.Clock())) > 1}, list, pager, len(failed) > 0})
	return nil
}

func (p Pages) test(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if _, err := p.deliveries.Test(r.Context(), p.RequestOf(r), of.Ref()); err != nil {
		return err
	}
	return pages.Done(w, r, "webhook-tested", pathOf(of))
}

func (p Pages) replay(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	id := chi.URLParam(r, "delivery")
	if _, err := p.deliveries.Replay(r.Context(), p.RequestOf(r), of.Ref(), id); err != nil {
		return pages.ProblemOf(err, "delivery", id)
	}
	return pages.Done(w, r, "webhook-replayed", pathOf(of))
}

// replayFailed replays all stored failed deliveries.
func (p Pages) replayFailed(w http.ResponseWriter, r *http.Request, of Listed) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if _, err := p.deliveries.ReplayFailed(r.Context(), p.RequestOf(r), of.Ref(), time.Time{}); err != nil {
		return err
	}
	return pages.Done(w, r, "webhook-replayed", pathOf(of))
}
