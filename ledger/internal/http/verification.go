package http

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

func verificationOperations(a *API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{organization}/verification", Handle: a.verify, ID: "verifyBooks", Scopes: []string{ScopeRead},
			Summary: "Check the books of an organization now: those of the running period and the one before, usage per project and key, " +
				"and the grants made since then against their entries, usage by hour against usage by day, budgets against usage, " +
				"statements against books, all decisions and statements against the ones before, the plan, budgets and grants " +
				"against the decisions, refusals against their sums, and the chain, of which the links of the last 24 hours are made " +
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

// verify checks an organization's books and answers with the violations.
func (a *API) verify(w http.ResponseWriter, r *http.Request) error {
	organization, err := organizationFromPath(r)
	if err != nil {
		return err
	}
	found, err := a.Integrity.Verify(r.Context(), organization)
	if err != nil {
		return answer(err, organization)
	}
	httpapi.WriteJSON(w, http.StatusOK, newVerificationBody(organization, found))
	return nil
}
