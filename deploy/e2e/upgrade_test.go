package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// upgrade: an organization with an exhausted quota is refused until
// billing grants bytes, and again until its plan changes. Then
// everything continues, and what was accepted is charged to the byte.
func upgrade(t *testing.T, ctx context.Context, in installation) {
	to := in.tenant(t, ctx, "growing", "bootstrapper")
	m, h := &maker{mark: "growing"}, &history{}
	useUp(t, ctx, in, to, m, h)
	grant := in.decide(t, ctx, "POST", to.organization+"/grants", 201, map[string]any{"amount": quotaBytes, "reason": "a hand"})
	if grant["remaining"] != float64(quotaBytes) {
		t.Errorf("grant %v", grant)
	}
	goesOn(t, ctx, in, to, m, h)
	useUp(t, ctx, in, to, m, h)
	plan := in.decide(t, ctx, "PUT", to.organization+"/subscription", 200, map[string]any{"tier": "scale", "effective": "now"})
	if plan["tier"] != "scale" || plan["state"] != "active" {
		t.Errorf("subscription %v", plan)
	}
	goesOn(t, ctx, in, to, m, h)
	verify(t, ctx, in, to, h)
}

// useUp posts until the quota is exhausted.
func useUp(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history) {
	t.Helper()
	for range 100 {
		if err := postOne(ctx, in, to, m, h); err != nil {
			must(t, wantProblem(err, 429, "quota_exceeded"))
			return
		}
	}
	t.Fatal("nothing exhausts the quota")
}

// goesOn waits until posts are accepted again.
func goesOn(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history) {
	t.Helper()
	testenv.Eventually(t, viewTimeout, func() error { return postOne(ctx, in, to, m, h) })
}

func postOne(ctx context.Context, in installation, to tenant, m *maker, h *history) error {
	entries := []sent{m.sized(9_000, 2_000)}
	_, err := in.api.Post(ctx, to.key, plainly(body(texts(entries)...)))
	if err == nil {
		h.accepted("growing", entries)
	}
	return err
}

// decide sends a request of billing about an organization.
func (in installation) decide(t *testing.T, ctx context.Context, method, path string, want int, input any) (answered map[string]any) {
	t.Helper()
	text, err := json.Marshal(input)
	must(t, err)
	answer, err := in.api.Call(ctx, client.Request{Method: method, Path: "/organizations/" + path, Body: text,
		Header: map[string]string{"Authorization": "Bearer " + in.operator, "Content-Type": "application/json", "Idempotency-Key": fmt.Sprint(method, path)}})
	must(t, err)
	if answer.Status != want {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	must(t, json.Unmarshal(answer.Body, &answered))
	return answered
}
