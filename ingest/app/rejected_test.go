package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// What is rejected is listed some seconds later, counted over replicas, and
// still there after a restart: also what came right before.
func TestRejectedEntriesAreKept(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	r.account("org_b", nil)
	key, foreign := r.key("org_a", "prj_a", nil), r.key("org_b", "prj_b", nil)
	first, second := r.start(nil), r.start(nil)
	for _, p := range []*replica{first, second} {
		p.admits(key, foreign)
	}
	const path, bad = "/v1/projects/prj_a/rejected-entries", `{"timestamp":"2026-11-20T10:00:00Z","level":"loud","message":"m"}`
	has := func(p *replica, want ...string) {
		t.Helper()
		testenv.Eventually(t, func() error {
			got := p.get(key, path)
			for _, part := range want {
				if !strings.Contains(string(got.text), part) {
					return fmt.Errorf("%d %s lacks %s", got.status, got.text, part)
				}
			}
			return nil
		})
	}
	first.post(key, bodyOf(bad, bad, entry("fine")))
	second.post(key, bodyOf(bad))
	has(first, `"code":"invalid_level","entries":3`, `"pointer":"/logs/1/level"`, `\"level\":\"loud\",\"message\":\"m\"}"`, `"fix":"Send`)
	if got := first.get(foreign, path); got.status != 404 {
		t.Errorf("another organization gets %d %s", got.status, got.text)
	}
	first.post(key, []byte(`{"logs":`))
	first.stop()
	second.stop()
	third := r.start(nil)
	third.admits(key)
	has(third, `"code":"invalid_level","entries":3`, `"code":"invalid_json","entries":1`, `"text":"{\"logs\":"`)
}
