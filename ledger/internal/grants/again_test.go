package grants_test

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A request stored under its input's first type name is answered again,
// not refused.
func TestRequestsOfBeforeTheMoveAreKnown(t *testing.T) {
	l := ledgertest.Acme(t)
	key := sha256.Sum256([]byte("key"))
	inputs := map[string]func(unitofwork.Request) error{
		`service.adjusting{"Bytes":5,"Reason":"r","Of":"0001-01-01T00:00:00Z"}`: func(r unitofwork.Request) error {
			_, err := l.Grants.Adjust(t.Context(), "acme", r, 5, "r", time.Time{})
			return err
		},
		`service.voiding{"Grant":"grt_1"}`: func(r unitofwork.Request) error {
			_, err := l.Grants.Void(t.Context(), "acme", r, "grt_1")
			return err
		},
	}
	for input, request := range inputs {
		hash := sha256.Sum256([]byte(input))
		l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO answers (organization, key, input, answer, answered_at) VALUES ('acme', $1, $2, '{}', $3)
				ON CONFLICT (organization, key) DO UPDATE SET input = excluded.input`, key[:], hash[:], l.Now())
			return err
		})
		if err := request(unitofwork.Request{IdempotencyKey: "key"}); err != nil {
			t.Errorf("%s: %v", input, err)
		}
	}
}
