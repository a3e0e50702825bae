package tenants_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// Who fills in a form is told what is wrong, and of no parameter.
func TestFaultsNameNoParameter(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for name, err := range map[string]error{
		"webhook":  tenants.CreateWebhook{ID: "whk_1", Organization: "org_1", URL: "ftp://hooks"}.Check(),
		"key":      tenants.IssueAPIKey{Project: "prj_1", Name: "a", ExpiresAt: now, At: now.Add(time.Hour), RatePerMinute: -1}.Check(),
		"rotation": tenants.RotateAPIKey{Overlap: -1}.Check(),
	} {
		var faults tenants.Invalid
		if !errors.As(err, &faults) || len(faults) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		for _, fault := range faults {
			if fault.Field != "environment" && strings.HasPrefix(fault.Detail, fault.Field+" is ") {
				t.Errorf("%s: %s", name, fault.Detail)
			}
		}
	}
}
