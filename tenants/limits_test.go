package tenants_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants"
)

// A missing limit has a default; the last place can be
// taken, and then the limit is reported with a remedy.
func TestLimits(t *testing.T) {
	limits := tenants.Limits{Projects: 3}.OrDefault()
	for what, want := range map[tenants.Countable]int{
		tenants.CountProjects: 3, tenants.CountProjectsKept: 9, tenants.CountAPIKeys: 1000, tenants.CountAPIKeysKept: 3000, tenants.CountServiceTokens: 100,
		tenants.CountServiceTokensKept: 300, tenants.CountMembers: 500, tenants.CountInvitations: 200,
	} {
		if got := limits.Of(what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
		if err := limits.Check(what, want-1); err != nil {
			t.Errorf("the last of %s: %v", what, err)
		}
		err := limits.Check(what, want)
		full, is := errors.AsType[tenants.LimitReached](err)
		if !is || full.Limit != want || !strings.Contains(err.Error(), string(what)) || !strings.Contains(err.Error(), "raise the limit") {
			t.Errorf("one more of %s: %v", what, err)
		}
	}
}
