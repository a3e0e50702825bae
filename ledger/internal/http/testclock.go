package http

import (
	"cmp"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/rehearsals"
	"github.com/weirlog/weir/shared/httpapi"
)

type clockBody struct {
	Organization string    `json:"organization"`
	Test         bool      `json:"test"`
	At           time.Time `json:"at"`
}

// testClock answers with an organization's time and whether it is a test.
func (a *API) testClock(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
	if err != nil {
		return err
	}
	found, err := a.Rehearsals.Clock(r.Context(), organization)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, clockBody(found))
	return nil
}

// advanceClockBody is the new time; without one the organization only
// becomes a test.
type advanceClockBody struct {
	At *time.Time `json:"at"`
}

// advanceTestClock advances the clock of a test.
func (a *API) advanceTestClock(w http.ResponseWriter, r *http.Request) error {
	var body advanceClockBody
	organization, request, err := requestWith(w, r, &body)
	if err != nil {
		return err
	}
	at, err := kept("at", body.At)
	if err != nil {
		return answer(err, organization)
	}
	made, err := a.Rehearsals.Advance(r.Context(), organization, request, at)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, clockBody(made))
	return nil
}

// useBody is a rehearsed request.
type useBody struct {
	Bytes       int64  `json:"bytes"`
	Entries     *int   `json:"entries"`
	Project     string `json:"project"`
	Key         string `json:"key"`
	Environment string `json:"environment"`
}

func (b useBody) spec() ledger.Rehearsed {
	one := 1
	return ledger.Rehearsed{Bytes: b.Bytes, Entries: *cmp.Or(b.Entries, &one), Project: b.Project, Key: b.Key, Environment: b.Environment}
}

type rehearsalBody struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Bytes     int64     `json:"bytes"`
	Accepted  bool      `json:"accepted"`
	Rule      *string   `json:"rule"` // that refused it; null: it was accepted
	Covered   int64     `json:"covered"`
	Overage   int64     `json:"overage"`
	Remaining int64     `json:"remaining"`
	Exhausts  bool      `json:"exhausts"`
}

func newRehearsalBody(u rehearsals.Use) rehearsalBody {
	body := rehearsalBody{
		ID: u.ID, At: u.At, Bytes: u.Bytes, Accepted: u.Rule == "", Covered: u.Covered, Overage: u.Overage, Remaining: u.Remaining, Exhausts: u.Exhausts,
	}
	if u.Rule != "" {
		body.Rule = &u.Rule
	}
	return body
}

// rehearseUse charges or refuses a rehearsed request.
func (a *API) rehearseUse(w http.ResponseWriter, r *http.Request) error {
	var body useBody
	organization, request, err := requestWith(w, r, &body)
	if err != nil {
		return err
	}
	made, err := a.Rehearsals.Use(r.Context(), organization, request, body.spec())
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, newRehearsalBody(made))
	return nil
}
