package http_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
)

// Sealed hours are linked to each other, the verification has the last
// link, and it lists violations.
func TestChain(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	if none := a.must(t, 200, "GET", "verification", ""); none["sound"] != true || none["chain"] != nil || none["sealed_through"] != nil {
		t.Errorf("before: %v", none)
	}
	for range 2 {
		a.Apply(t, a.NewCharge("acme", 10))
		a.Pass(2 * time.Hour)
		if err := integrity.Seal(t.Context(), a.Pool, a.Now()); err != nil {
			t.Fatal(err)
		}
	}
	first := a.must(t, 200, "GET", "chain?limit=1", "")
	last := first["items"].([]any)[0].(map[string]any)
	second := a.must(t, 200, "GET", "chain?limit=1&cursor="+first["next_cursor"].(string), "")
	if before := second["items"].([]any)[0].(map[string]any); last["bytes"] != 10.0 || last["charges"] != 1.0 || last["previous"] != before["hash"] || last["hash"] == before["hash"] {
		t.Errorf("%v follows %v", last, before)
	}
	sound := a.must(t, 200, "GET", "verification", "")
	if head, _ := sound["chain"].(map[string]any); sound["sound"] != true || head["hash"] != last["hash"] || sound["sealed_through"] == nil {
		t.Errorf("sealed: %v", sound)
	}
	a.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE organization = 'acme' AND consumed > 0`)
		return err
	})
	spoiled := a.must(t, 200, "GET", "verification", "")
	if found := spoiled["violations"].([]any); spoiled["sound"] != false || len(found) == 0 || found[0].(map[string]any)["detail"] == "" {
		t.Errorf("spoiled: %v", spoiled)
	}
	a.refuses(t, map[string]string{
		"GET chain?from=x ": "?from", "GET chain?from=2026-11-02T00:00:01Z&to=2026-11-02T00:00:00Z ": "?to",
		"GET chain?cursor=x ": "?cursor", "GET verification?deep=1 ": "?deep",
	})
}
