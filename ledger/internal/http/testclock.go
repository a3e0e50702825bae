package http

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func testClockOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/test-clock",
			Handle: reads(func(ctx context.Context, organization string) (testClockBody, error) {
				found, err := a.TestClocks.Clock(ctx, organization)
				return testClockBody(found), err
			}, itself),
			ID: "getTestClock", Scopes: []string{ScopeRead},
			Summary: "What time it is for an organization, and whether it is a test",
			Query:   struct{}{},
			Answer:  openapi.Answer{Type: testClockBody{}},
		},
		{
			Route:  "PUT /v1/organizations/{organization}/test-clock",
			Handle: changes(http.StatusOK, a.advanceTestClock, itself), ID: "advanceTestClock", Scopes: []string{ScopeWrite},
			Summary: "Have an organization be a test, and let time pass for it",
			Description: "All that is due by then is done, in its order: periods close, statements are made, grants start and expire. An " +
				"organization becomes a test by it, for good, in its first period and if it was never charged; ingest accepts " +
				"nothing of it.",
			Headers: idempotent{},
			Body:    openapi.Body{Type: advanceClockBody{}},
			Answer:  openapi.Answer{Type: testClockBody{}},
		},
		{
			Route: "POST /v1/organizations/{organization}/test-clock/use",
			Handle: changes(http.StatusCreated, func(ctx context.Context, organization string, request unitofwork.Request, body useBody) (plans.TestUse, error) {
				return a.TestClocks.Use(ctx, organization, request, body.spec())
			}, newTestUseBody),
			ID: "useTestClock", Scopes: []string{ScopeWrite},
			Summary: "Charge a test, or refuse it, as if it had sent a request",
			Headers: idempotent{},
			Body:    openapi.Body{Type: useBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: testUseBody{}},
		},
	}
}

type testClockBody struct {
	Organization string    `json:"organization"`
	Test         bool      `json:"test" description:"A test organization, with a test clock: nobody owes anything"`
	At           time.Time `json:"at" description:"What time it is for the organization: of a test by its own clock"`
}

// advanceClockBody is the new time; without one the organization only
// becomes a test.
type advanceClockBody struct {
	At *time.Time `json:"at" nullable:"true" description:"No earlier than before, and at most 400 days from now. Left out: the organization becomes a test, and nothing else"`
}

// advanceTestClock advances the clock of a test.
func (a *API) advanceTestClock(ctx context.Context, organization string, request unitofwork.Request, body advanceClockBody) (found testClockBody, err error) {
	at, err := kept("at", body.At)
	if err != nil {
		return found, err
	}
	made, err := a.TestClocks.Advance(ctx, organization, request, at)
	return testClockBody(made), err
}

// useBody is a request of a test.
type useBody struct {
	Bytes       int64  `json:"bytes" required:"true" minimum:"1"`
	Entries     *int   `json:"entries" minimum:"1" maximum:"1000000000" default:"1"`
	Project     string `json:"project" maxLength:"64" description:"The id of a project of the organization"`
	Key         string `json:"key" pattern:"^key_[0-9a-f]{32}$" description:"The id of an API key, also of one that does not exist"`
	Environment string `json:"environment" enum:"prod,staging,dev"`
}

func (b useBody) spec() ledger.TestUse {
	one := 1
	return ledger.TestUse{Bytes: b.Bytes, Entries: *cmp.Or(b.Entries, &one), Project: b.Project, Key: b.Key, Environment: b.Environment}
}

type testUseBody struct {
	ID        string    `json:"id" description:"Where it was refused the request_id of the refusal, else the batch"`
	At        time.Time `json:"at" description:"By the test's clock"`
	Bytes     int64     `json:"bytes"`
	Accepted  bool      `json:"accepted"`
	Rule      *string   `json:"rule" enum:"suspended,exhausted,quota,budget" description:"By which it was refused; null: it was accepted"`
	Covered   int64     `json:"covered" description:"Of its bytes, by the allowance and grants"`
	Overage   int64     `json:"overage" description:"Of its bytes, by nothing"`
	Remaining int64     `json:"remaining" description:"Of the allowance and grants, afterwards"`
	Exhausts  bool      `json:"exhausts" description:"Nothing more would be accepted afterwards"`
}

func newTestUseBody(u plans.TestUse) testUseBody {
	body := testUseBody{
		ID: u.ID, At: u.At, Bytes: u.Bytes, Accepted: u.Rule == "", Covered: u.Covered, Overage: u.Overage, Remaining: u.Remaining, Exhausts: u.Exhausts,
	}
	if u.Rule != "" {
		body.Rule = &u.Rule
	}
	return body
}
