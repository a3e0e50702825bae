package http

import (
	"encoding/hex"
	"net/http"
	"time"

	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
)

type verificationBody struct {
	Organization string             `json:"organization"`
	At           time.Time          `json:"at"`
	Sound        bool               `json:"sound"`
	Violations   []violationBody    `json:"violations"`
	Chain        *headBody          `json:"chain"` // null: none yet
	Sealed       *time.Time         `json:"sealed_through"`
	Verified     contract.Positions `json:"verified_through"` // next offset of weir.logs.v1 by partition
}

type violationBody struct {
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}

type headBody struct {
	Sequence int64     `json:"sequence"`
	Hour     time.Time `json:"hour"`
	Hash     string    `json:"hash"`
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
	if err := httpapi.OnlyKnown(r, nil); err != nil {
		return err
	}
	organization, err := reached(r)
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
