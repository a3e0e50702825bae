package http

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

type chainQuery struct {
	From time.Time `query:"from" description:"Earliest hour, inclusive"`
	To   time.Time `query:"to" description:"Latest hour, exclusive"`
	httpapi.Page
}

func chainOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/chain",
			Handle: lists(pageOf, func(ctx context.Context, organization string, page page[linkPlace]) ([]ledger.Link, error) {
				return a.Integrity.Chain(ctx, organization, postgres.LinkQuery{From: page.from, To: page.to, Before: page.after.Before, Limit: page.limit + 1})
			}, newLinkBody, func(l ledger.Link) linkPlace { return linkPlace{l.Sequence} }),
			ID: "listLinks", Scopes: []string{ScopeRead},
			Summary: "The chain of an organization: what was charged in each hour of the log, and decided by its end, each link with the " +
				"hash of the one before, the latest first",
			Query:  chainQuery{},
			Answer: openapi.Answer{Type: httpapi.List[linkBody]{}},
		},
	}
}

type linkBody struct {
	Sequence  int64     `json:"sequence" description:"Number of the link, from 1"`
	Hour      time.Time `json:"hour" description:"Hour of the log: what follows a request of a later hour in its partition belongs to that"`
	Charges   int64     `json:"charges" description:"Requests charged"`
	Bytes     int64     `json:"bytes" description:"Bytes charged"`
	Charged   string    `json:"charged" pattern:"^[0-9a-f]{64}$" description:"SHA-256 of the charges, in the order of the log"`
	Decisions int64     `json:"decisions" description:"How many decisions there were by the end of the hour"`
	Decided   string    `json:"decided" pattern:"^[0-9a-f]{64}$" description:"SHA-256 of those that the link before does not have"`
	Previous  string    `json:"previous" pattern:"^[0-9a-f]{64}$" description:"Hash of the link before; zeros for the first"`
	Hash      string    `json:"hash" pattern:"^[0-9a-f]{64}$" description:"SHA-256 of all of this"`
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

func verificationOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/verification",
			Handle: reads(func(ctx context.Context, organization string) (verificationBody, error) {
				found, err := a.Integrity.Verify(ctx, organization)
				return newVerificationBody(organization, found), err
			}, itself),
			ID: "verifyBooks", Scopes: []string{ScopeRead},
			Summary: "Check the books of an organization now: those of the running period and the one before, usage per project and key, " +
				"and the grants made since then against their entries, usage by hour against usage by day, budgets against usage, " +
				"statements against books, all decisions and statements against the ones before, the plan, budgets and grants " +
				"against the decisions, refusals against their sums, and the chain, of which the links of the last 24 hours are computed " +
				"again from the charges",
			Query:  struct{}{},
			Answer: openapi.Answer{Type: verificationBody{}},
		},
	}
}

type verificationBody struct {
	Organization string             `json:"organization"`
	At           time.Time          `json:"at"`
	Sound        bool               `json:"sound" description:"No violation was found"`
	Violations   []violationBody    `json:"violations"`
	Chain        *headBody          `json:"chain" description:"The last link; null where there is none yet"`
	Sealed       *time.Time         `json:"sealed_through" description:"Through which instant chains are made; null where none is"`
	Verified     contract.Positions `json:"verified_through" description:"Next offset of weir.logs.v1 whose records are not compared with the entries yet, by partition"`
}

type violationBody struct {
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}

type headBody struct {
	Sequence int64     `json:"sequence"`
	Hour     time.Time `json:"hour"`
	Hash     string    `json:"hash" pattern:"^[0-9a-f]{64}$"`
}

func newVerificationBody(organization string, v integrity.Verification) verificationBody {
	body := verificationBody{
		Organization: organization, At: v.At, Sound: len(v.Violations) == 0, Violations: []violationBody{}, Verified: v.Verified,
	}
	for _, violation := range v.Violations {
		body.Violations = append(body.Violations, violationBody(violation))
	}
	if v.Head.Sequence > 0 {
		body.Chain = &headBody{v.Head.Sequence, v.Head.Hour, hex.EncodeToString(v.Head.Hash[:])}
	}
	if !v.Sealed.IsZero() {
		body.Sealed = &v.Sealed
	}
	return body
}
