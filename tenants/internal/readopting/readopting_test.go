package readopting_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/readopting"
)

// A key past its end is not readopted, revoked or not: where nothing tells
// when it was issued, it would end before that.
func TestKeyState(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	for name, of := range map[string]struct {
		hash    string
		revoked bool
		end     *time.Time
		want    readopting.KeyState
	}{
		"without a hash":        {want: readopting.Gone, revoked: true},
		"without end":           {hash: "h", want: readopting.InForce},
		"before its end":        {hash: "h", end: &later, want: readopting.InForce},
		"at its end":            {hash: "h", end: &now, want: readopting.Expired},
		"revoked":               {hash: "h", revoked: true, want: readopting.Revoked},
		"revoked, with an end":  {hash: "h", revoked: true, end: &later, want: readopting.Revoked},
		"revoked, past its end": {hash: "h", revoked: true, end: &now, want: readopting.Expired},
	} {
		o := readopting.Orphan{Named: bus.Named{Key: "key_1", Hash: of.hash, Revoked: of.revoked, Credential: &contract.Credential{ExpiresAt: of.end}}}
		if got := o.KeyState(now); got != of.want {
			t.Errorf("a key %s is %s, want %s", name, got, of.want)
		}
	}
}
